"""The cascade: only programs that pass the cheap stages are fully evaluated.

Covers: a candidate's way through a problem's stages, and the one verdict that it gets in the end.
A failure at any stage is final. Does not cover who goes on (``screen.py``) or running programs
(``pool.py``). One thread uses a `Cascade`: a candidate moves on when `Cascade.completed` is called.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from engine.core import Evaluation, Failure, Problem, SwitchedOff
from engine.evaluation.screen import Screen
from engine.settings import CascadeSettings

AUDITED = "cascade.audited"
"""Metric, 1, of a candidate that a stage rejected and that was fully evaluated as an audit."""

_log = logging.getLogger(__name__)


class StagePool(Protocol):
    """What the cascade needs of `EvaluatorPool`."""

    def submit(self, *, candidate_id: str, program: str, stage: int, order: int) -> None:
        """Hand a program over, to be evaluated at one stage after lower orders; never blocks."""

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        """Return the verdicts that are in, waiting up to ``timeout`` seconds for the first."""


@dataclass(kw_only=True, slots=True)
class _Submission:
    """A candidate on its way: where it is, and what the stages behind it said."""

    program: str
    iteration: int
    stage: int
    metrics: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    peak_bytes: int = 0


class Cascade:
    """Evaluates candidates stage by stage. A problem with one stage passes straight through.

    So does a run that keeps all: its candidates go to the full stage alone.

    A candidate's metrics contain those of the cheap stages too, each as ``STAGE.NAME``. So a new
    cascade that is told the recorded verdicts (`tell`) knows all that this one knew. A decision
    about a candidate uses the verdicts of earlier iterations that are in.
    """

    def __init__(
        self, *, pool: StagePool, problem: Problem, settings: CascadeSettings, seed: int
    ) -> None:
        """Begin with no candidate known.

        Args:
            pool: runs the programs; nobody else takes its completed verdicts.
            problem: whose stages these are.
            settings: the run's.
            seed: decides whom to audit.
        """
        self._pool = pool
        self._settings = settings
        self._direction = problem.direction
        self._names = [stage.name for stage in problem.stages[:-1]]
        self._screens = [
            Screen(stage=name, direction=problem.direction, settings=settings, seed=seed)
            for name in self._names
        ]
        self._submissions: dict[str, _Submission] = {}
        self._switched_off: dict[str, SwitchedOff] = {}
        # By cheap stage, the last iteration of which a candidate is known to have come to it.
        self._asked = [-1] * len(self._names)

    @property
    def in_flight(self) -> int:
        """Candidates submitted whose verdict `completed` has not returned yet."""
        return len(self._submissions)

    @property
    def switched_off(self) -> Mapping[str, SwitchedOff]:
        """The cheap stages that were found to rank too badly, by name."""
        return self._switched_off

    def submit(self, *, candidate_id: str, program: str, iteration: int) -> None:
        """Begin to evaluate ``program``; its verdict comes from `completed`.

        Args:
            candidate_id: under which the verdict comes.
            program: source text.
            iteration: that generated it; -1 for the initial program.
        """
        submission = _Submission(program=program, iteration=iteration, stage=-1)
        self._submissions[candidate_id] = submission
        self._send(candidate_id, submission)

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        """Return the final verdicts that are in, in the order in which they were reached.

        Waits up to ``timeout`` seconds (None: for ever) for the next verdict of any stage, until
        one is final; returns an empty list at once when nothing is in flight.
        """
        verdicts: list[tuple[str, Evaluation]] = []
        while not verdicts and self._submissions:
            finished = self._pool.completed(timeout=timeout)
            if not finished:
                break
            for candidate_id, evaluation in finished:
                verdict = self._advance(candidate_id, evaluation)
                if verdict is not None:
                    verdicts.append((candidate_id, verdict))
        return verdicts

    def tell(self, candidate_id: str, evaluation: Evaluation, *, iteration: int) -> None:
        """Take in a final verdict, this cascade's own or a recorded one; again changes nothing."""
        for stage, (name, screen) in enumerate(zip(self._names, self._screens, strict=True)):
            proxy = evaluation.metrics.get(f"{name}.score")
            if proxy is not None or stage == 0:
                self._asked[stage] = max(self._asked[stage], iteration)
            if proxy is not None:
                screen.tell(
                    candidate_id,
                    iteration=iteration,
                    proxy=proxy,
                    full=evaluation.score,
                    audited=AUDITED in evaluation.metrics,
                )

    def resume(self, switched_off: Mapping[str, SwitchedOff]) -> None:
        """Take over what an earlier session decided, after `tell` has had its verdicts.

        Args:
            switched_off: the stages that were switched off, by name.
        """
        self._switched_off.update(switched_off)
        for name, screen, asked in zip(self._names, self._screens, self._asked, strict=True):
            screen.resume(switched_off.get(name), after=asked)

    def _advance(self, candidate_id: str, evaluation: Evaluation) -> Evaluation | None:
        """Return the final verdict on a candidate that a stage is done with; None if it goes on."""
        submission = self._submissions[candidate_id]
        submission.seconds += evaluation.seconds
        submission.peak_bytes = max(submission.peak_bytes, evaluation.peak_bytes)
        if submission.stage < len(self._screens) and evaluation.score is not None:
            prefix = self._names[submission.stage]
            submission.metrics |= {f"{prefix}.{k}": v for k, v in evaluation.metrics.items()}
            message = self._rejection(candidate_id, submission, evaluation.score)
            if message is None:
                self._send(candidate_id, submission)
                return None
            evaluation = replace(
                evaluation, score=None, failure=Failure.SCREENED, message=message, metrics={}
            )
        del self._submissions[candidate_id]
        verdict = replace(
            evaluation,
            metrics={**evaluation.metrics, **submission.metrics},
            seconds=submission.seconds,
            peak_bytes=submission.peak_bytes,
        )
        self.tell(candidate_id, verdict, iteration=submission.iteration)
        return verdict

    def _rejection(self, candidate_id: str, submission: _Submission, proxy: float) -> str | None:
        """Return why the candidate ends at its stage; None if it goes on, perhaps as an audit."""
        screen, name = self._screens[submission.stage], self._names[submission.stage]
        threshold = screen.threshold(submission.iteration)
        if threshold is None or not self._direction.better(threshold, than=proxy):
            return None
        if screen.audits(candidate_id):
            submission.metrics[AUDITED] = 1.0
            return None
        return (
            f"stage {name}: score {proxy!r} does not reach {threshold!r}, as the best "
            f"{100 * self._settings.keep:.3g} % of recent programs do"
        )

    def _send(self, candidate_id: str, submission: _Submission) -> None:
        """Hand a candidate to the next stage that is on; to the last one if nothing screens it."""
        last = len(self._screens)
        # Where all are kept a cheap stage would decide nothing, and nobody would be audited whose
        # verdict could switch it off.
        goes_straight = self._settings.keep >= 1 or AUDITED in submission.metrics
        submission.stage = last if goes_straight else submission.stage + 1
        while submission.stage < last and self._is_off(submission.stage, submission.iteration):
            submission.stage += 1
        # The oldest iteration first. Islands whose candidates were evaluated in turns would get
        # their last verdicts together, and all decode while the evaluators have nothing.
        self._pool.submit(
            candidate_id=candidate_id,
            program=submission.program,
            stage=submission.stage,
            order=submission.iteration,
        )

    def _is_off(self, stage: int, iteration: int) -> bool:
        off = self._screens[stage].switched_off(iteration)
        if off is not None and off.stage not in self._switched_off:
            self._switched_off[off.stage] = off
            _log.warning(
                "stage %s is switched off from iteration %d on: its rank correlation with the full "
                "score is %.3f (+%.3f) over %d programs, below evaluation.cascade.correlation_min "
                "(%g)",
                *(off.stage, off.iteration, off.correlation, off.error, off.pairs),
                self._settings.correlation_min,
            )
        return off is not None

"""The loop: ask, compose, generate, parse, evaluate, tell, with all of it under way at once.

The model decodes in a thread of its own, the evaluators run in theirs; this one takes what they
have done, records what follows from it in one transaction, and hands it on. Each child goes to an
evaluator the moment it is done.
Each island is sequential in itself: its next call is asked for when all verdicts of its last one
are in, so no choice is made before its facts are known. Two things overlap: the decode of a call's
last children with the evaluation of its first, and the islands with each other, whose calls share
one batch. With ``pipeline.overlap=false`` nothing overlaps: a call is decoded, its candidates are
evaluated, the next call is asked for.

Does not cover wiring: ``engine.evolve``.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from engine.budget import Allowance
from engine.core import Evaluation, Refusal, SwitchedOff
from engine.pipeline import LoadWatch, Reader, Request, Response, RunState
from engine.search.features import cell_of
from engine.store import Child, Event, Verdict
from engine.timeline import Activity, Queue, Timeline

_PATIENCE = 0.2  # seconds after which the loop looks at the clock though nothing was reported


class Generator(Protocol):
    """What the loop needs of the calls to the model: `engine.pipeline.Calls`."""

    def ask(self, *, candidates: int) -> object:
        """Begin calls while there is room; ``candidates``: how many are being evaluated."""

    def send(self) -> None:
        """Send what was begun; it is on disk."""

    def received(self) -> Iterator[tuple[Request, Response]]:
        """Yield what has come back; the children of each are recorded before the next."""

    def wind_up(self) -> None:
        """End all calls: their children come back with what they have."""

    def abandon(self) -> None:
        """Forget all calls: a run that goes on decodes again what is not recorded."""

    @property
    def in_flight(self) -> int:
        """Calls whose children are not all recorded."""

    @property
    def children(self) -> int:
        """How many are at the model."""


class Evaluator(Protocol):
    """What the loop needs of ``engine.evaluation``: `engine.evaluation.Cascade`."""

    def submit(self, *, candidate_id: str, program: str, iteration: int) -> None:
        """Hand over a program that ``iteration`` generated; never blocks."""

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        """Return the verdicts that are in, waiting up to ``timeout`` seconds for the first."""

    @property
    def in_flight(self) -> int:
        """Programs handed over whose verdicts were not returned yet."""

    @property
    def switched_off(self) -> Mapping[str, SwitchedOff]:
        """The cheap stages that were found to rank too badly, by name."""


class Loop:
    """One run's loop, from wherever its log ends to the end of its budget."""

    def __init__(
        self,
        *,
        state: RunState,
        record: Callable[[Event], None],
        commit: Callable[[], None],
        generator: Generator,
        reader: Reader,
        evaluator: Evaluator,
        overlap: bool,
        allowance: Allowance,
        stopped: Callable[[], bool],
        watch: LoadWatch,
        timeline: Timeline,
        bell: threading.Event,
    ) -> None:
        """Join the parts.

        Args:
            state: the run as far as it is recorded; ``record`` keeps it up to date.
            record: appends an event to the log and folds it into the state.
            commit: brings what was recorded to disk. Nothing is sent to the model or an evaluator
                before the event that says so is there.
            generator: asks the search, and has the model generate children.
            reader: reads them.
            evaluator: runs and scores candidates; has been told everything that is recorded.
            overlap: whether a candidate may be evaluated while its siblings are decoded.
            allowance: what the budget still allows.
            stopped: whether the user asked for an end.
            watch: lets the limits on what is under way follow the load.
            timeline: records what the model does and waits for.
            bell: rings when the evaluator has a verdict, or the model a child.
        """
        self._state = state
        self._record = record
        self._commit = commit
        self._generator = generator
        self._reader = reader
        self._evaluator = evaluator
        self._overlap = overlap
        self._allowance = allowance
        self._stopped = stopped
        self._watch = watch
        self._timeline = timeline
        self._bell = bell
        self._admitted: list[Child] = []  # candidates that are recorded and not evaluated

    def run(self) -> None:
        """Go on until the budget is spent or the user asks for an end."""
        self._admitted = [*self._state.history.pending.values()]
        while self._turn():
            if not self._generator.children:
                self._timeline.model.begin(Activity.AWAIT_EVALUATIONS)
            self._bell.wait(_PATIENCE)
            self._bell.clear()
        self._timeline.model.end()

    def _turn(self) -> bool:
        """Do what can be done now; return whether there is something to wait for."""
        verdicts = self._evaluator.completed(timeout=0)
        self._record_switched_off()
        for candidate_id, evaluation in verdicts:
            self._tell(candidate_id, evaluation)
        for request, response in self._generator.received():
            self._parse(request, response)
        if stopped := self._stopped():
            self._generator.abandon()
        elif self._allowance.is_spent:
            self._generator.wind_up()
        else:
            self._generator.ask(candidates=self._evaluator.in_flight + len(self._admitted))
        self._commit()
        self._evaluate()
        self._generator.send()
        self._timeline.count(Queue.CHILDREN, self._generator.children)
        self._watch.look(candidates=self._evaluator.in_flight)
        awaited = 0 if stopped or self._allowance.is_late else self._evaluator.in_flight
        return bool(self._generator.in_flight or awaited)

    def _parse(self, request: Request, response: Response) -> None:
        """Record a response's children, and keep those that are worth an evaluation."""
        for child in self._reader.children(request, response):
            if child.refusal is None and self._allowance.is_spent:
                child = dataclasses.replace(child, refusal=Refusal.BUDGET)
            self._record(child)
            if child.refusal is None:
                self._admitted.append(child)

    def _evaluate(self) -> None:
        """Have the candidates evaluated; without overlap, once all children of a call are back."""
        if self._generator.in_flight and not self._overlap:
            return
        for child in self._admitted:
            assert child.program is not None  # a refused child is not admitted
            self._evaluator.submit(
                candidate_id=child.id, program=child.program.text, iteration=child.iteration
            )
        self._admitted.clear()
        self._timeline.count(Queue.CANDIDATES, self._evaluator.in_flight)

    def _tell(self, candidate_id: str, evaluation: Evaluation) -> None:
        """Record a verdict, which tells it to the search."""
        program = self._state.history.children[candidate_id].program
        cell = cell_of(program, evaluation, features=self._state.search.features)
        self._record(Verdict(candidate=candidate_id, evaluation=evaluation, cell=cell))
        self._timeline.count(Queue.CANDIDATES, self._evaluator.in_flight)

    def _record_switched_off(self) -> None:
        """Record the stages that were switched off since the last time.

        Before the verdicts that follow: a run that is killed between the two does not look again.
        """
        for name, off in self._evaluator.switched_off.items():
            if name not in self._state.history.switched_off:
                self._record(off)

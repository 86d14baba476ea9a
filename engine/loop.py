"""The loop: ask, compose, generate, parse, evaluate, tell.

Covers: one iteration after the other, each child going to an evaluator the moment it finishes, and
going on in the middle of an iteration that a death cut short. Does not cover wiring or files:
``engine.run``.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import numpy as np

from engine.core import Evaluation, Generation, Miss, Preference, Prompt, Proposal, Refusal
from engine.evaluation import SwitchedOff
from engine.inference import LanguageModel, MissLedger, Sampling
from engine.outcomes import Outcomes
from engine.prompts import Operator
from engine.restore import entry_of
from engine.search import Search
from engine.settings import RunSettings
from engine.store import Call, Child, Event, RunHistory, ScreenOff, Verdict
from engine.timeline import Timeline
from engine.timeline_file import Activity, Queue
from engine.warmest import WarmestParent


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
    """One run's loop, from wherever its history stands to the end of its budget."""

    def __init__(
        self,
        *,
        settings: RunSettings,
        history: RunHistory,
        record: Callable[[Event], None],
        search: Search,
        operators: Mapping[str, Operator],
        model: LanguageModel,
        evaluator: Evaluator,
        stopped: Callable[[], bool],
        timeline: Timeline,
    ) -> None:
        """Join the parts.

        Args:
            settings: the run's.
            history: what is recorded so far; ``record`` keeps it up to date.
            record: writes an event to the log and folds it into ``history``.
            search: has been told everything in ``history``.
            operators: by name.
            model: the language model.
            evaluator: runs and scores candidates; has been told everything in ``history``.
            stopped: whether the user asked for an end.
            timeline: records what the model does and waits for.
        """
        self._settings = settings
        self._history = history
        self._record = record
        self._search = search
        self._operators = operators
        self._model = model
        self._evaluator = evaluator
        self._stopped = stopped
        self._timeline = timeline
        self._outcomes = Outcomes(history, workers=settings.evaluation.workers)
        self._warmest = WarmestParent(
            search=search,
            operators=operators,
            model=model,
            tolerance=settings.search.prefer_cached,
        )
        self._misses = MissLedger(block_size=model.block_size)
        self._longest_parent = min(each.longest_parent for each in operators.values())
        self._deadline = time.monotonic() + self._seconds_left()

    def run(self) -> None:
        """Go on until the budget is spent or the user asks for an end."""
        for child in self._history.pending():
            assert child.program is not None  # a refused child is not pending
            self._submit(child.id, child.program, child.iteration)
        self._collect_all()
        self._tell_outcomes()
        iteration = max(self._history.calls, default=0)
        while not self._is_over():
            self._iterate(iteration)
            iteration += 1

    def _iterate(self, iteration: int) -> None:
        call = self._history.calls.get(iteration)
        with self._timeline.model.begin(Activity.AWAIT_PARENT, iteration=iteration):
            proposal, preference = self._propose(iteration, call)
            operator = self._operators[proposal.operator]
            prompt = operator.compose(proposal)
            sampling = self._sampling(proposal, prompt)
        if call is None:
            call = _call(proposal, prompt, sampling, preference)
            self._record(call)
        missing = self._history.missing(call)
        if missing:
            self._generate(proposal, operator, prompt, {i: sampling[i] for i in missing})
        self._collect_all()
        self._tell_outcomes()

    def _propose(self, iteration: int, call: Call | None) -> tuple[Proposal, Preference | None]:
        """Return what to ask for; of a call that is recorded, what was asked for."""
        if call is None:
            return self._warmest.choose(self._search.ask(iteration))
        return self._search.ask(iteration, parent_id=call.parent, k=call.k), call.preference

    def _generate(
        self,
        proposal: Proposal,
        operator: Operator,
        prompt: Prompt,
        sampling: Mapping[int, Sampling],
    ) -> None:
        """Generate the children numbered in ``sampling``, handing each on as it finishes."""
        numbers = list(sampling)
        misses = self._misses.begin(prompt, compactions=proposal.compactions)
        fan = self._model.fanout(token_ids=prompt.token_ids, sampling=list(sampling.values()))
        while fan.is_running:
            with self._timeline.model.begin(Activity.STEP, iteration=proposal.iteration):
                generations = fan.step()
            self._timeline.count(Queue.CHILDREN, fan.in_flight)
            for generation in generations:
                program = operator.parse(
                    parent=proposal.parent, prompt=prompt, generation=generation
                )
                cached = generation.cached_prompt_tokens
                # An abort before the first token leaves nothing counted.
                missed = misses.of_child(cached) if generation.prompt_tokens else {}
                self._take(proposal, numbers[generation.index], generation, program, missed)
            self._tell(self._evaluator.completed(timeout=0))
            if self._stopped():
                fan.close()  # a resumed run generates what is not recorded
            elif self._is_spent():
                for number in range(len(numbers)):
                    fan.abort(number)

    def _take(
        self,
        proposal: Proposal,
        index: int,
        generation: Generation,
        program: str | None,
        missed: Mapping[Miss, int],
    ) -> None:
        """Record a child, and have it evaluated if it is worth it."""
        refusal = self._search.refusal(program, parent=proposal.parent)
        if refusal is None and program is not None and self._is_long(program):
            refusal = Refusal.LONG
        if refusal is None and self._is_spent():
            refusal = Refusal.BUDGET
        child = Child(
            id=f"{proposal.iteration}.{index}",
            iteration=proposal.iteration,
            index=index,
            parent=proposal.parent.id,
            operator=proposal.operator,
            completion=generation.text,
            completion_ids=generation.token_ids,
            finish_reason=generation.finish_reason,
            program=program,
            refusal=refusal,
            prompt_tokens=generation.prompt_tokens,
            cached_prompt_tokens=generation.cached_prompt_tokens,
            llm_seconds=generation.llm_seconds,
            missed=missed,
        )
        self._record(child)
        if refusal is None and program is not None:
            self._search.admit(entry_of(child, program))
            self._submit(child.id, program, child.iteration)

    def _submit(self, candidate_id: str, program: str, iteration: int) -> None:
        self._evaluator.submit(candidate_id=candidate_id, program=program, iteration=iteration)
        self._timeline.count(Queue.CANDIDATES, self._evaluator.in_flight)
        for name, off in self._evaluator.switched_off.items():
            if name not in self._history.screens_off:
                self._record(ScreenOff(**dataclasses.asdict(off)))

    def _collect_all(self) -> None:
        with self._timeline.model.begin(Activity.AWAIT_EVALUATIONS):
            while self._evaluator.in_flight:
                self._tell(self._evaluator.completed(timeout=None))

    def _tell_outcomes(self) -> None:
        for outcome in self._outcomes.finished():
            self._search.tell_outcome(outcome)

    def _tell(self, verdicts: Iterable[tuple[str, Evaluation]]) -> None:
        for candidate_id, evaluation in verdicts:
            self._record(Verdict.of(candidate_id, evaluation))
            self._search.tell(candidate_id, evaluation)
        self._timeline.count(Queue.CANDIDATES, self._evaluator.in_flight)

    def _sampling(self, proposal: Proposal, prompt: Prompt) -> list[Sampling]:
        """Spread the temperature evenly over the children; a single child gets the middle."""
        low, high = self._settings.search.temperature_min, self._settings.search.temperature_max
        k = proposal.k
        temperatures = np.linspace(low, high, k) if k > 1 else [(low + high) / 2]
        seeds = np.random.SeedSequence([proposal.seed, 1]).generate_state(k)
        return [
            Sampling(
                temperature=float(temperature),
                seed=int(seed),
                stop=prompt.stop,
                max_tokens=prompt.max_tokens,
                banned=prompt.banned,
                grammar=prompt.grammar,
            )
            for temperature, seed in zip(temperatures, seeds, strict=True)
        ]

    def _is_long(self, program: str) -> bool:
        """Whether a prompt with this parent could outgrow the model's context."""
        return len(self._model.encode(program)) > self._longest_parent

    def _seconds_left(self) -> float:
        limit = self._settings.budget.seconds
        return float("inf") if limit is None else limit - self._history.wall_seconds

    def _is_over(self) -> bool:
        return self._stopped() or self._is_spent()

    def _is_spent(self) -> bool:
        """Whether the budget allows no further candidate."""
        full = self._history.admitted >= self._settings.budget.candidates
        return full or time.monotonic() >= self._deadline


def _call(
    proposal: Proposal,
    prompt: Prompt,
    sampling: Iterable[Sampling],
    preference: Preference | None,
) -> Call:
    return Call(
        iteration=proposal.iteration,
        parent=proposal.parent.id,
        operator=proposal.operator,
        k=proposal.k,
        prompt=prompt.text,
        prompt_tokens=len(prompt.token_ids),
        temperatures=tuple(each.temperature for each in sampling),
        seeds=tuple(each.seed for each in sampling),
        preference=preference,
    )

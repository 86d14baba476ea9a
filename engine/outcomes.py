"""What each iteration brought and cost, as the width policy wants to know it.

Covers: reading it off the recorded events, iteration by iteration. As the loop and a resume read
the same events, a run that was killed chooses its Ks as one that was not. Does not cover the
choice (``engine.search.width``).
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.core import INITIAL
from engine.search import IterationOutcome
from engine.store import Call, Child, RunHistory


class Outcomes:
    """Hands out the outcome of each iteration once, in order, when all its verdicts are in."""

    def __init__(self, history: RunHistory, *, workers: int) -> None:
        """Begin before the first iteration.

        Args:
            history: of the run, as far as it is recorded; it may grow.
            workers: evaluators.
        """
        self._history = history
        self._workers = workers
        self._next = 0
        self._best = history.verdicts[INITIAL].score

    def finished(self) -> Iterator[IterationOutcome]:
        """Yield the outcomes of the iterations that have ended since the last time."""
        while (call := self._history.calls.get(self._next)) is not None and self._is_over(call):
            children = self._children(call)
            yield self._outcome(call, children)
            for child in children:
                self._note_best(child)
            self._next += 1

    def _is_over(self, call: Call) -> bool:
        history = self._history
        return not history.missing(call) and all(
            child.refusal is not None or child.id in history.verdicts
            for child in self._children(call)
        )

    def _children(self, call: Call) -> list[Child]:
        return [self._history.children[f"{call.iteration}.{i}"] for i in range(call.k)]

    def _outcome(self, call: Call, children: list[Child]) -> IterationOutcome:
        computed = [child.prompt_tokens - child.cached_prompt_tokens for child in children]
        generated = [child.generated_tokens for child in children]
        verdicts = [self._history.verdicts[child.id] for child in children if child.refusal is None]
        return IterationOutcome(
            iteration=call.iteration,
            children=len(children),
            improved=sum(map(self._is_better, (verdict.score for verdict in verdicts))),
            model_seconds=sum(child.llm_seconds for child in children),
            computed_tokens=sum(computed),
            repeated_tokens=sum(computed) - max(computed),
            decode_steps=max(generated),
            generated_tokens=sum(generated),
            evaluation_seconds=sum(verdict.seconds for verdict in verdicts) / self._workers,
        )

    def _is_better(self, score: float | None) -> bool:
        if score is None or self._best is None:
            return score is not None
        return self._history.direction.better(score, than=self._best)

    def _note_best(self, child: Child) -> None:
        verdict = self._history.verdicts.get(child.id)
        if verdict is not None and self._is_better(verdict.score):
            self._best = verdict.score

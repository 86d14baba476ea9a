"""What each iteration brought and cost, as the search wants to know it when it is over.

Covers: reading it off the recorded events, island by island. As the loop and a resume read the
same events, a run that was killed goes on as one that was not. Does not cover what the search makes
of it (``engine.search``), or which children took over a cell of an archive: without one, those that
beat the best of the island's first and own programs improved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from engine.search import IterationOutcome
from engine.store import Call, Child, RunHistory


class Outcomes:
    """Hands out the outcome of each iteration once, when all its verdicts are in.

    An island's iterations come in their order; those of different islands as they end.
    """

    def __init__(
        self,
        history: RunHistory,
        *,
        workers: int,
        first_best: Callable[[int], float | None],
    ) -> None:
        """Begin before the first iteration.

        Args:
            history: of the run, as far as it is recorded; it may grow.
            workers: evaluators.
            first_best: the best score that an island began with; None if it began with none.
        """
        self._history = history
        self._workers = workers
        self._first_best = first_best
        self._open: dict[int, deque[Call]] = {}
        self._best: dict[int, float | None] = {}

    def begin(self, call: Call) -> None:
        """Take in that a call was recorded."""
        self._open.setdefault(call.island, deque()).append(call)

    def is_open(self, island: int) -> bool:
        """Whether an iteration of the island has begun that is not over."""
        return bool(self._open.get(island))

    def finished(self) -> Iterator[IterationOutcome]:
        """Yield the outcomes of the iterations that have ended since the last time."""
        for island, calls in self._open.items():
            while calls and self._is_over(calls[0]):
                call = calls.popleft()
                children = self._children(call)
                yield self._outcome(call, children)
                for child in children:
                    self._note_best(island, child)

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
            island=call.island,
            parent=call.parent,
            children=len(children),
            improved=sum(self._is_better(call.island, verdict.score) for verdict in verdicts),
            model_seconds=sum(child.llm_seconds for child in children),
            computed_tokens=sum(computed),
            repeated_tokens=sum(computed) - max(computed),
            decode_steps=max(generated),
            generated_tokens=sum(generated),
            evaluation_seconds=sum(verdict.seconds for verdict in verdicts) / self._workers,
        )

    def _is_better(self, island: int, score: float | None) -> bool:
        """Whether a score beats those of the island's first programs and own children so far."""
        best = self._best[island] if island in self._best else self._first_best(island)
        if score is None or best is None:
            return score is not None
        return self._history.direction.better(score, than=best)

    def _note_best(self, island: int, child: Child) -> None:
        verdict = self._history.verdicts.get(child.id)
        if verdict is not None and self._is_better(island, verdict.score):
            self._best[island] = verdict.score

"""What each iteration brought and cost, for the search, once all its verdicts are in.

Covers: reading that off the recorded events, island by island. The loop and a resume read the same
events, so a run that was killed goes on as one that was not. Does not cover what the search makes
of an outcome, or which children improved their island (``engine.search``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from engine.search.widths import IterationOutcome
from engine.store import Call, Child, Event, RunHistory, Verdict


class Outcomes:
    """Hands out the outcome of each iteration once, when all its verdicts are in.

    An island's iterations come in their order; those of different islands as they end.
    """

    def __init__(
        self,
        history: RunHistory,
        *,
        workers: int,
        improved: Callable[[int, int], int],
    ) -> None:
        """Begin before the first iteration.

        Args:
            history: of the run, as far as it is recorded; it may grow.
            workers: evaluators.
            improved: how many children of an island and its iteration improved the island.
        """
        self._history = history
        self._workers = workers
        self._improved = improved
        self._open: dict[int, deque[Call]] = {}  # by island
        self._awaited: dict[int, int] = {}  # by iteration: children that are not judged

    def is_open(self, island: int) -> bool:
        """Whether an iteration of the island has begun that is not over."""
        return bool(self._open.get(island))

    def fold(self, event: Event) -> Iterator[IterationOutcome]:
        """Take in an event that the history has; yield the outcomes of the iterations it ends."""
        if isinstance(event, Call):
            self._open.setdefault(event.island, deque()).append(event)
            self._awaited[event.iteration] = event.k
        elif isinstance(event, Child) and event.refusal is not None:
            yield from self._judged(event)
        elif isinstance(event, Verdict) and event.candidate in self._history.children:
            yield from self._judged(self._history.children[event.candidate])

    def _judged(self, child: Child) -> Iterator[IterationOutcome]:
        self._awaited[child.iteration] -= 1
        calls = self._open[self._history.calls[child.iteration].island]
        while calls and not self._awaited[calls[0].iteration]:
            del self._awaited[calls[0].iteration]
            yield self._outcome(calls.popleft())

    def _outcome(self, call: Call) -> IterationOutcome:
        children = [self._history.children[f"{call.iteration}.{i}"] for i in range(call.k)]
        computed = [child.prompt_tokens - child.cached_prompt_tokens for child in children]
        generated = [child.generated_tokens for child in children]
        verdicts = [self._history.verdicts[child.id] for child in children if child.refusal is None]
        return IterationOutcome(
            iteration=call.iteration,
            island=call.island,
            parent=call.parent,
            children=len(children),
            improved=self._improved(call.island, call.iteration),
            model_seconds=sum(child.llm_seconds for child in children),
            computed_tokens=sum(computed),
            repeated_tokens=sum(computed) - max(computed),
            decode_steps=max(generated),
            generated_tokens=sum(generated),
            evaluation_seconds=sum(verdict.evaluation.seconds for verdict in verdicts)
            / self._workers,
        )

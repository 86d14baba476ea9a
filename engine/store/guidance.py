"""The guidance of a run: what a model wrote of how to go about the problem, and what came of it.

Guidance is kept by island. The initial one, whose id is None, is on every island; every other one
is on the island of the child before which it was written, and has that child's id. Its score is the
best of the programs that were written with it.

Covers: what was recorded. Does not cover the initial one's text, or who is shown which:
``engine.guidance``.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from engine.core import FIRST_ITERATION, Call, Child, Direction, Guidance, Verdict
from engine.settings import GUIDED


@dataclass(frozen=True, kw_only=True, slots=True)
class TriedGuidance:
    """Guidance, and the best score that came of it.

    Attributes:
        id: of the child before which it was written; None for the initial one.
        score: None as long as no program that was written with it has one.
    """

    id: str | None
    score: float | None


@dataclass(kw_only=True)
class GuidanceRecord:
    """All guidance of a run, as a fold of its events.

    Attributes:
        direction: of the scores.
        unread: answers that brought none.
    """

    direction: Direction
    unread: int = field(default=0, init=False)
    _texts: dict[str, str] = field(default_factory=dict, init=False)
    _written: list[tuple[int, str]] = field(default_factory=list, init=False)
    """Where in the log each stands, and its id."""
    _calls: dict[int, tuple[int, str | None]] = field(default_factory=dict, init=False)
    """By iteration: its island, and the guidance that it began with."""
    _iterations: dict[str, int] = field(default_factory=dict, init=False)  # of the children
    _scores: defaultdict[tuple[int, str | None], list[tuple[int, float]]] = field(
        default_factory=lambda: defaultdict(list), init=False
    )
    """By island and guidance: where in the log a verdict stands, and its score."""

    def __len__(self) -> int:
        """How many were written."""
        return len(self._texts)

    def knows(self, guidance: str | None) -> bool:
        """Whether guidance is recorded; the initial one always is."""
        return guidance is None or guidance in self._texts

    def text_of(self, guidance: str) -> str:
        """Return the text of guidance that was written.

        Raises:
            KeyError: there is none of this id.
        """
        return self._texts[guidance]

    def fold(self, event: Guidance | Call | Child | Verdict, *, at: int) -> None:
        """Take in an event, the ``at``-th of the log."""
        if isinstance(event, Call):
            if event.operator in GUIDED:  # the prompts of all others show none
                self._calls[event.iteration] = event.island, event.guidance
        elif isinstance(event, Guidance):
            if event.text is None:
                self.unread += 1
            else:
                self._texts[event.child] = event.text
                self._written.append((at, event.child))
        elif isinstance(event, Child):
            self._iterations[event.id] = event.iteration
        elif event.score is not None:
            call = self._calls.get(self._iterations.get(event.candidate, FIRST_ITERATION))
            if call is None:  # the run began with the program, or it was written without guidance
                return
            island, begun_with = call
            own = event.candidate if event.candidate in self._texts else begun_with
            self._scores[island, own].append((at, event.score))

    def as_of(self, events: int, *, island: int) -> tuple[TriedGuidance, ...]:
        """Return an island's as the first ``events`` events have it; the initial one first."""
        written = [name for at, name in self._written if at <= events and self._on(name, island)]
        return tuple(
            TriedGuidance(id=name, score=self._best(island, name, events))
            for name in (None, *written)
        )

    def _on(self, name: str, island: int) -> bool:
        call = self._calls.get(int(name.split(".")[0]))
        return call is not None and call[0] == island

    def _best(self, island: int, name: str | None, events: int) -> float | None:
        scores = [score for at, score in self._scores.get((island, name), ()) if at <= events]
        return min(scores, key=self.direction.key, default=None)

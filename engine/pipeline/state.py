"""A run's state: its history, and a search that knows it, as a fold of the recorded events.

The order of the log is the truth: the search is told each event as it is recorded, and a run that
goes on tells the events again in the same order, so it stands where the other one stood.

Does not cover where events come from: ``engine.loop`` records them, ``engine.restore`` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.core import INITIAL, Program
from engine.pipeline.outcomes import Outcomes
from engine.search.population import Entry
from engine.search.search import Search
from engine.store import Call, Child, Recorded, RunHistory, Seed, Verdict
from engine.syntax import read


class RunState:
    """What is known of a run; `fold` every event into it once it is recorded."""

    def __init__(self, *, history: RunHistory, search: Search, workers: int) -> None:
        """Begin a run.

        Args:
            history: with no event.
            search: that knows nothing.
            workers: evaluators.
        """
        self.history = history
        self.search = search
        self._outcomes = Outcomes(history, workers=workers, improved=search.improved)
        self._last: dict[int, int] = {}  # by island: its last call's iteration

    def fold(self, recorded: Recorded) -> None:
        """Take one event in."""
        self.history.fold(recorded)
        event = recorded.event
        if isinstance(event, Call):
            self.search.begin(
                event.iteration,
                island=event.island,
                operator=event.operator,
                repairs=event.repairs,
            )
            self._last[event.island] = event.iteration
        elif isinstance(event, Child):
            if event.refusal is None and event.program is not None:
                self.search.admit(self._entry(event, event.program))
        elif isinstance(event, Verdict):
            if event.candidate == INITIAL:
                self.search.admit(Entry(id=INITIAL, program=_read(self.history, INITIAL)))
            elif event.candidate in self.history.seeds:
                self.search.admit(_seeded(self.history, self.history.seeds[event.candidate]))
            self.search.tell(event.candidate, event.evaluation, cell=event.cell)
        for outcome in self._outcomes.fold(event):
            self.search.finish(outcome)

    def is_open(self, island: int) -> bool:
        """Whether an iteration of the island has begun whose verdicts are not all in."""
        return self._outcomes.is_open(island)

    def last_call(self, island: int) -> int:
        """Return the iteration of the island's last call; -1 before the first."""
        return self._last.get(island, -1)

    def next_of(self, islands: Iterable[int]) -> int | None:
        """Return which of ``islands`` may call next; None of none.

        They take turns: it is the one whose last call was recorded first.
        """
        return min(sorted(islands), key=self.last_call, default=None)

    def _entry(self, child: Child, program: Program) -> Entry:
        call = self.history.calls[child.iteration]
        return Entry(
            id=child.id,
            program=program,
            iteration=child.iteration,
            index=child.index,
            island=call.island,
            parent=child.parent,
            operator=child.operator,
            answer=child.completion,
            answer_ids=child.completion_ids,
            partner=call.partner,
            repairs=call.repairs,
        )


def _read(history: RunHistory, candidate: str) -> Program:
    """Return one of the programs that the run began with."""
    program = read(history.program_of(candidate))
    assert program is not None  # or the run had not begun
    return program


def _seeded(history: RunHistory, seed: Seed) -> Entry:
    return Entry(
        id=seed.candidate,
        program=_read(history, seed.candidate),
        index=1 + seed.number,  # behind the initial program
        islands=seed.islands,
    )

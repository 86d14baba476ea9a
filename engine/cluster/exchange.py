"""Migrants between islands whose runs have a log each.

An **epoch** of an island is ``islands.migrate_every`` of its iterations. At an epoch's end, before
its next call is asked for, an island records whom it sends, and takes what its neighbours sent at
the end of the epoch before: it waits for a neighbour that is not as far. So what an island knows at
each call follows from the runs themselves, not from how fast each of them is. The lag of one epoch
lets neighbours be almost two epochs apart before anyone waits.

A neighbour that is over sends no more, and its last event says so (`Sent.epoch` of -1).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.core import Child, Event, Migrant, Sent, Verdict
from engine.pipeline import Calls, RunState
from engine.search.features import cell_of

OVER = -1
"""Epoch of the event that says that an island sends no more."""
_PAUSE = 0.05  # seconds between two looks at a neighbour's log

Read = Callable[[int, type[Event], str], Event | None]
"""Returns an event of an island's log by its kind and subject; None if it is not there."""


@dataclass(kw_only=True)
class Exchange:
    """What one island sends and receives.

    Attributes:
        state: of its run.
        record: appends an event to its log.
        neighbours: numbers of the islands that send it migrants, in their order.
        every: iterations of an epoch; 0 for no migrants.
        most: programs that it sends at an epoch's end.
        read: reads the neighbours' logs.
    """

    state: RunState
    record: Callable[[Event], None]
    neighbours: Sequence[int]
    every: int
    most: int
    read: Read

    def __post_init__(self) -> None:
        self._done = 0  # the epoch at whose end all was sent and received
        self._next_look = 0.0

    def is_through(self) -> bool:
        """Whether the island's next call may be asked for; send and receive what is due."""
        state = self.state
        finished = state.finished(0)
        if not self.every or not finished or finished % self.every or state.is_open(0):
            return True
        epoch = finished // self.every
        if self._done == epoch:
            return True
        if epoch not in state.history.sent:
            best = state.search.migrants(0, most=self.most)
            self.record(Sent(epoch=epoch, candidates=tuple(each.id for each in best)))
        if not self._receive(epoch - 1):
            return False
        self._done = epoch
        return True

    def _receive(self, epoch: int) -> bool:
        """Take in what all neighbours sent; do nothing as long as one of them has not."""
        if not epoch:
            return True
        if time.monotonic() < self._next_look:
            return False
        sent = {number: self._sent(number, epoch) for number in self.neighbours}
        if None in sent.values():
            self._next_look = time.monotonic() + _PAUSE
            return False
        for number, names in sent.items():
            for name in names or ():
                self._arrive(number, name)
        return True

    def _sent(self, number: int, epoch: int) -> Sequence[str] | None:
        """Return whom a neighbour sent at the end of an epoch; None if it is not as far."""
        # In this order, or one that sends its last and is over meanwhile seems to have sent none.
        over, sent = (self.read(number, Sent, str(each)) for each in (OVER, epoch))
        found = sent or over
        return found.candidates if isinstance(found, Sent) else None

    def _arrive(self, number: int, name: str) -> None:
        child, verdict = self.read(number, Child, name), self.read(number, Verdict, name)
        assert isinstance(child, Child) and isinstance(verdict, Verdict)  # or it was not sent
        program = child.program
        assert program is not None
        if self.state.search.is_duplicate(program):  # found here, or sent before
            return
        migrants = self.state.history.migrants
        arrived = Migrant(number=len(migrants), origin=number, candidate=name, program=program)
        self.record(arrived)
        # Cells may follow from the seed, and each island has its own.
        cell = cell_of(program, verdict.evaluation, features=self.state.search.features)
        self.record(Verdict(candidate=arrived.id, evaluation=verdict.evaluation, cell=cell))


@dataclass(kw_only=True)
class MigratingCalls(Calls):
    """Calls of an island that wait for the migrants that are due.

    Attributes:
        exchange: the island's.
    """

    exchange: Exchange

    def __post_init__(self) -> None:
        super().__post_init__()
        self._waits = False

    @property
    def waits(self) -> bool:
        """See `Calls.waits`."""
        return self._waits

    def ask(self, *, candidates: int) -> bool:
        """See `Calls.ask`."""
        self._waits = not self.exchange.is_through()
        return True if self._waits else super().ask(candidates=candidates)

    def wind_up(self) -> None:
        """See `Calls.wind_up`."""
        self._waits = False
        super().wind_up()

    def abandon(self) -> None:
        """See `Calls.abandon`."""
        self._waits = False
        super().abandon()

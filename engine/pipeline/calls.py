"""The calls that the search has asked for: whose turn it is, and which are under way.

Each island is sequential in itself: its next call is asked for when the verdicts of its last one
are all in. Those of different islands are under way at once.

Covers: choosing the island, asking for its call, recording and sending it. Does not cover how a
request is composed and read (``requests.py``), or what becomes of a child (``engine.loop``).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from engine.core import Proposal, UserError
from engine.pipeline.back_pressure import BackPressure
from engine.pipeline.request import Request, Response
from engine.pipeline.requests import Requests
from engine.pipeline.state import RunState
from engine.store import Call, Event


@dataclass(kw_only=True)
class Calls:
    """Asks for calls and follows them until their last child is back.

    Attributes:
        state: the run's, as far as it is recorded.
        record: appends an event to the log and folds it into the state.
        requests: those at the model.
        pressure: says whether there is room for another call.
        overlap: whether a call may begin while anything is under way.
    """

    state: RunState
    record: Callable[[Event], None]
    requests: Requests
    pressure: BackPressure
    overlap: bool

    def __post_init__(self) -> None:
        self._under_way: dict[int, Request] = {}  # by ticket
        self._numbers: defaultdict[int, list[int]] = defaultdict(list)  # by island, of its next
        self._next = self.state.history.next_iteration

    @property
    def in_flight(self) -> int:
        """Calls that have children which are not back."""
        return len(self._under_way)

    @property
    def waits(self) -> bool:
        """Whether the next call can't be asked for before something has happened elsewhere."""
        return False

    @property
    def children(self) -> int:
        """How many are at the model."""
        return self.requests.children

    @property
    def islands(self) -> set[int]:
        """The islands whose calls these are."""
        return {request.proposal.island for request in self._under_way.values()}

    def begin_again(self, proposals: Iterable[Proposal]) -> None:
        """Decode the children that are missing of calls that are recorded.

        Raises:
            UserError: a call's prompt is not the one that is recorded, so its children would not
                be siblings: another version of the engine began it, or another tokenizer.
        """
        for proposal in proposals:
            request = self.requests.compose(proposal)
            if request.call().prompt != self.state.history.calls[proposal.iteration].prompt:
                raise UserError(
                    f"call {proposal.iteration} was cut short, and its prompt would be another one "
                    "here than the one that is recorded; go on with the version of Brood, and the "
                    "model, that began the run, or begin a new run with pool.sources=[FOLDER]"
                )
            self._under_way[request.ticket] = request

    def ask(self, *, candidates: int) -> bool:
        """Begin calls as long as an island's turn has come and there is room.

        Args:
            candidates: that are at the evaluators.

        Returns:
            Whether there is room left.
        """
        while self._has_room(candidates):
            island = self.state.turn()
            if island is None:
                return True
            proposal = self.state.search.ask(self.number(island), island=island)
            if not self.pressure.fits(proposal.k, beside=self.children):
                return False
            self.begin(proposal)
        return False

    def begin(self, proposal: Proposal) -> None:
        """Record the call that the search has asked for."""
        request = self.requests.compose(proposal)
        self.take_over(request, request.call())

    def send(self) -> None:
        """Send what was begun; it is on disk."""
        self.requests.send()

    def take_over(self, request: Request, call: Call) -> None:
        """Record a call whose request is under way, and follow the request from now on."""
        self.record(call)
        del self._numbers[call.island][0]
        if request.left:
            self._under_way[request.ticket] = request

    def received(self) -> Iterator[tuple[Request, Response]]:
        """Yield what has come back of these calls; record each before you take the next."""
        for request, response in self.requests.received():
            if request.ticket in self._under_way:
                if not request.left:
                    del self._under_way[request.ticket]
                yield request, response

    def wind_up(self) -> None:
        """End all calls: their children come back with what they have."""
        for request in self._under_way.values():
            self.requests.abort(request)

    def abandon(self) -> None:
        """Forget all calls: a run that goes on decodes again what is not recorded."""
        for request in self._under_way.values():
            self.requests.drop(request)
        self._under_way.clear()

    def number(self, island: int, *, after: int = 0) -> int:
        """Return the iteration of an island's next call, or of a later one.

        A number that was returned once stays reserved for that call.

        Args:
            island: its number.
            after: how many calls later; 0 for the next one.
        """
        numbers = self._numbers[island]
        while len(numbers) <= after:
            numbers.append(self._next)
            self._next += 1
        return numbers[after]

    def _has_room(self, candidates: int) -> bool:
        if not self.overlap:
            return not self._under_way and not candidates
        return self.pressure.has_room(children=self.children, candidates=candidates)

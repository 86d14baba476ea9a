"""The calls under way: whose turn it is, which of them are guesses, and what became of those.

Each island is sequential in itself. Its next call is asked for when the verdicts of its last one
are all in; once that one is decoded and they are not, the next call may begin on a guess of its
parent, and once that is decoded too, the one after it. A guess that comes true is recorded and goes
on as any call; a wrong one is given up, and what it had cost is recorded.

Covers: choosing the island, composing and sending its call, confirming and giving up guesses. Does
not cover what becomes of a child (``engine.loop``), whether guesses pay (``speculation.py``) or
which parent is guessed (``engine.search.predictor``).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from engine.core import Generation, Preference, Proposal
from engine.inference import Decoder, MissLedger, Model
from engine.pipeline.flight import Flight, Standing, spread
from engine.pipeline.landing import Landing
from engine.pipeline.limits import Limits
from engine.pipeline.reader import Reader
from engine.pipeline.speculation import Speculation
from engine.pipeline.state import RunState
from engine.pipeline.warmest import WarmestParent
from engine.prompts import Operator
from engine.settings import RunSettings
from engine.store import Event
from engine.timeline import Timeline
from engine.timeline_file import Activity


class Calls:
    """Begins calls and follows them until their last child is back."""

    def __init__(
        self,
        *,
        settings: RunSettings,
        state: RunState,
        record: Callable[[Event], None],
        operators: Mapping[str, Operator],
        model: Model,
        decoder: Decoder,
        reader: Reader,
        limits: Limits,
        timeline: Timeline,
    ) -> None:
        """Begin with no call under way.

        Args:
            settings: the run's.
            state: the run's, as far as it is recorded.
            record: writes an event to the log and folds it into the state.
            operators: by name.
            model: the language model.
            decoder: decodes what is sent.
            reader: reads the children of guesses.
            limits: on what may be under way.
            timeline: records what the model waits for.
        """
        self._search_settings = settings.search
        self._overlap = settings.pipeline.overlap
        self._ahead = settings.pipeline.ahead
        self._shows_pending = settings.prompts.history_tokens > 0
        self._end_early = settings.pipeline.end_early
        self._state = state
        self._search = state.search
        self._record = record
        self._operators = operators
        self._decoder = decoder
        self._reader = reader
        self._limits = limits
        self._timeline = timeline
        self._speculation = Speculation(settings.pipeline.speculate)
        self._misses = MissLedger(block_size=model.block_size)
        self._warmest = WarmestParent(
            search=state.search,
            operators=operators,
            model=model,
            tolerance=settings.search.prefer_cached,
        )
        self._flights: dict[int, Flight] = {}
        self._tickets = itertools.count()
        # By island, of its next call, the one after it, and so on:
        self._guesses: defaultdict[int, list[int]] = defaultdict(list)  # tickets
        self._numbers: defaultdict[int, list[int]] = defaultdict(list)  # iterations
        self._next = state.history.next_iteration
        self._seconds: float | None = None
        self._passed: set[int] = set()  # islands that had a chance to guess and did not take it

    @property
    def seconds(self) -> float | None:
        """How long the last call took that was decoded to its end; None before the first one."""
        return self._seconds

    @property
    def in_flight(self) -> int:
        """Calls that have children which are not back, or are guesses."""
        return len(self._flights)

    def begin_again(self, proposals: Iterable[Proposal]) -> None:
        """Decode the children that are missing of calls that are recorded."""
        for proposal in proposals:
            self._send(self._composed(proposal, standing=Standing.ASKED))

    def ask(self, *, candidates: int, left: int | None) -> None:
        """Begin calls as long as an island's turn has come and there is room.

        Args:
            candidates: that are at the evaluators.
            left: candidates that the budget still admits; None for any number.
        """
        while self._has_room(candidates):
            if (island := self._due_island()) is not None:
                begun = self._begin_asked(island)
            elif (island := self._guessable_island()) is not None and self._would_count(left):
                begun = self._begin_guess(island)
            else:
                return
            if not begun:
                return

    def land(self, ticket: int, generation: Generation) -> tuple[Flight, Landing] | None:
        """Take in a completion; return what is to be recorded, or None if nothing is now.

        What a guess brings is kept, and comes with the flight when it is confirmed. For what nobody
        waits for, nothing comes.
        """
        flight = self._flights.get(ticket)
        if flight is None:
            return None
        landing = flight.land(generation)
        if flight.asks_again:
            self._submit(ticket)
        if not flight.left:
            self._misses.end(flight.misses)
            if flight.is_wanted:
                self._seconds = flight.seconds
        self._clear_away(ticket)
        return (flight, landing) if flight.standing is Standing.ASKED else None

    def judge_guesses(self, news: Collection[int]) -> list[Flight]:
        """Confirm or give up each guess of which it is known, or nearly known, what it is.

        Args:
            news: islands for which verdicts have come in since the last time.

        Returns:
            The flights that were confirmed; the children that they hold are to be taken now. What
            they are found to be may decide on further guesses: judge again.
        """
        confirmed = []
        for island in range(self._search.islands):
            guesses = self._guesses[island]
            if guesses and not self._state.is_open(island):
                flight = self._flights[guesses[0]]
                asked = self._search.verify(flight.proposal)
                if flight.is_like(asked):
                    confirmed.append(self._confirm(island, rule=asked.rule))
                else:
                    # Those after it may still be right, unless they show children of this one.
                    self._give_up(island, slice(None if self._shows_pending else 1))
                    self._send_asked(*self._warmest.choose(asked))
                    self._review(island)
            elif island in news:
                self._review(island)
        return confirmed

    def _review(self, island: int) -> None:
        """Give up the first guess that is no longer likely, which other verdicts will hardly
        change, and all after it.
        """
        for position, ticket in enumerate(self._guesses[island]):
            flight = self._flights[ticket]
            expected = self._search.predict(
                flight.proposal.iteration, island=island, guesses=self._guessed(island)[:position]
            )
            if not flight.is_like(expected):
                self._give_up(island, slice(position, None))
                return

    def wind_up(self) -> None:
        """Abort everything: children come back with what they have, guesses are given up."""
        for island in range(self._search.islands):
            self._give_up(island, slice(None))
        for ticket, flight in self._flights.items():
            if flight.standing is Standing.ASKED:
                self._decoder.abort(ticket)

    def abandon(self) -> None:
        """Abort everything: what the search asked for is forgotten, guesses are given up."""
        for island in range(self._search.islands):
            self._give_up(island, slice(None))
        for ticket in [t for t, f in self._flights.items() if f.standing is Standing.ASKED]:
            self._decoder.abort(ticket)
            del self._flights[ticket]

    # Whose turn it is.

    def _has_room(self, candidates: int) -> bool:
        if not self._overlap:
            return not self._flights and not candidates
        children = self._decoder.in_flight
        return candidates < self._limits.candidates and children < self._limits.children

    def _due_island(self) -> int | None:
        """Return the island that has the room among those that may ask; None if there is none."""
        return self._state.next_of(
            island
            for island in range(self._search.islands)
            if not self._state.is_open(island) and not self._guesses[island]
        )

    def _guessable_island(self) -> int | None:
        """Return an island whose calls are decoded, its verdicts not in, if it is to guess."""
        if not self._overlap:
            return None
        busy = {
            flight.proposal.island
            for flight in self._flights.values()
            if flight.is_wanted and flight.left
        }
        far = {island for island, each in self._guesses.items() if len(each) == self._ahead}
        free = set(range(self._search.islands)) - busy - far - self._passed
        while (island := self._state.next_of(filter(self._state.is_open, free))) is not None:
            if self._speculation.is_due():
                return island
            self._passed.add(island)
            free.remove(island)
        return None

    def _would_count(self, left: int | None) -> bool:
        """Whether the budget admits more candidates than the guesses that stand will bring."""
        held = [self._flights[ticket] for guesses in self._guesses.values() for ticket in guesses]
        if left is None or left > sum(each.children_held for each in held):
            return True
        return left > len(self._reader.pending(held))

    # Sending.

    def _begin_asked(self, island: int) -> bool:
        """Begin what the search asks for; return False if there is no room for its children."""
        drawn = self._search.ask(self._number(island, 0), island=island)
        proposal, preference = self._warmest.choose(drawn)
        fits = self._fits(proposal)
        if fits:
            self._send_asked(proposal, preference)
        return fits

    def _begin_guess(self, island: int) -> bool:
        """Begin what the search will probably ask for; return as `_begin_asked`."""
        guesses = self._guesses[island]
        before = (self._flights[ticket] for ticket in guesses)
        proposal = self._search.predict(
            self._number(island, len(guesses)),
            island=island,
            ahead=self._reader.pending(before) if self._shows_pending else (),
            guesses=self._guessed(island),
        )
        fits = self._fits(proposal)
        if fits:
            self._speculation.begin()
            guesses.append(self._send(self._composed(proposal, standing=Standing.GUESSED)))
        return fits

    def _guessed(self, island: int) -> list[Proposal]:
        return [self._flights[ticket].proposal for ticket in self._guesses[island]]

    def _fits(self, proposal: Proposal) -> bool:
        in_flight = self._decoder.in_flight
        return not in_flight or in_flight + proposal.k <= self._limits.children

    def _number(self, island: int, position: int) -> int:
        """Return the iteration of an island's next call, or of the one so many calls after it.

        A guess and what takes its place share one.
        """
        numbers = self._numbers[island]
        while len(numbers) <= position:
            numbers.append(self._next)
            self._next += 1
        return numbers[position]

    def _send_asked(self, proposal: Proposal, preference: Preference | None = None) -> None:
        flight = self._composed(proposal, standing=Standing.ASKED)
        flight.preference = preference
        self._record_call(flight)
        self._send(flight)

    def _composed(self, proposal: Proposal, *, standing: Standing) -> Flight:
        if not self._decoder.in_flight:
            self._timeline.model.begin(Activity.AWAIT_PARENT, iteration=proposal.iteration)
        operator = self._operators[proposal.operator]
        prompt = operator.compose(proposal)
        history = self._state.history
        call = history.calls.get(proposal.iteration)
        return Flight(
            proposal=proposal,
            operator=operator,
            prompt=prompt,
            sampling=spread(self._search_settings, proposal, prompt),
            numbers=range(proposal.k) if call is None else history.missing(call),
            misses=self._misses.begin(
                prompt, island=proposal.island, compactions=proposal.compactions
            ),
            known=history.events,
            ahead=tuple(each.id for each in proposal.pending if each.id not in history.children),
            standing=standing,
        )

    def _record_call(self, flight: Flight) -> None:
        self._record(flight.call())
        del self._numbers[flight.proposal.island][0]
        self._passed.discard(flight.proposal.island)

    def _send(self, flight: Flight) -> int:
        ticket = next(self._tickets)
        self._flights[ticket] = flight
        self._submit(ticket)
        return ticket

    def _submit(self, ticket: int) -> None:
        flight = self._flights[ticket]
        self._decoder.submit(
            ticket,
            iteration=flight.proposal.iteration,
            token_ids=flight.prompt.token_ids,
            sampling=flight.unsent,
            is_over=flight.is_over if self._end_early else _never,
        )

    # What becomes of them.

    def _confirm(self, island: int, *, rule: str) -> Flight:
        """Record an island's first guess, which came true: the parent was drawn by ``rule``."""
        ticket = self._guesses[island].pop(0)
        flight = self._flights[ticket]
        flight.proposal = dataclasses.replace(flight.proposal, rule=rule)
        self._speculation.judge(right=True, seconds=flight.seconds)
        self._record_call(flight)
        flight.standing = Standing.ASKED
        self._clear_away(ticket)
        return flight

    def _give_up(self, island: int, which: slice) -> None:
        """Abort guesses; what they cost is recorded when their children are back."""
        for ticket in self._guesses[island][which]:
            flight = self._flights[ticket]
            self._speculation.judge(right=False, seconds=flight.seconds)
            flight.standing = Standing.DROPPED
            self._decoder.abort(ticket)
            self._clear_away(ticket)
        del self._guesses[island][which]

    def _clear_away(self, ticket: int) -> None:
        """Forget a flight whose children are all back, unless it is still a guess."""
        flight = self._flights[ticket]
        if flight.left or flight.standing is Standing.GUESSED:
            return
        del self._flights[ticket]
        if flight.standing is Standing.DROPPED:
            attempt = self._state.history.attempts(flight.proposal.iteration)
            self._record(flight.given_up(attempt=attempt))


def _never(text: str) -> bool:
    """Let a child go on to its end."""
    return False

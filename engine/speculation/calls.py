"""Calls that begin early: on a guess of their parent, once their island's last call is decoded.

An island's next call may begin while verdicts of its last one are out; once that call is decoded,
the one after it may. The prompt shows candidates without a verdict as pending. A guess that comes
true is recorded and goes on as any call. A wrong one is given up, and its cost is recorded. The
children of a guess are neither recorded nor evaluated before it has come true.

**The guess** is what the search asks for on what is known, with the random numbers of the real ask.
It is wrong only where a program without a verdict is drawn, or changes the weights of the others
(``engine.search.race``). The source of the idea ("Accelerating LLM Guided Search with Parallel
Exploration", "Speculative pipelining") names the best program, which is wrong whenever its sampler
explores, and asks for a guess that mixes exploitation and exploration: this one mixes them as the
search does.

Covers: beginning, confirming and giving up guesses. Does not cover the calls that the search has
asked for (``engine.pipeline.calls``).
"""

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from engine.budget import Allowance
from engine.core import Call, GivenUp, Pending, Proposal
from engine.pipeline import Calls, Reader, Request, Response
from engine.settings import RunSettings
from engine.steering import Steering


@dataclass(frozen=True, kw_only=True, slots=True)
class Guess:
    """A call that began on a guess.

    Attributes:
        request: at the model; its responses wait in it.
        ahead: ids of the pending entries that it shows and that were not in the log then.
    """

    request: Request
    ahead: tuple[str, ...]

    @property
    def proposal(self) -> Proposal:
        """What is expected to be asked for."""
        return self.request.proposal

    @property
    def children(self) -> int:
        """Children that are back."""
        return sum(len(response.children) for response in self.request.responses)

    def comes_true(self, proposal: Proposal) -> bool:
        """Whether its prompt will do for ``proposal``: the same change of the same program.

        The rule that drew the parent may be another one, unless the prompt speaks of it.
        """
        stance = self.request.operator.stance
        says_the_same = stance(self.proposal.rule) == stance(proposal.rule)
        return says_the_same and _asked_for(self.proposal) == _asked_for(proposal)

    def call(self) -> Call:
        """Return the event that records the call, once the guess has come true."""
        return dataclasses.replace(self.request.call(), guessed=True, ahead=self.ahead)

    def given_up(self, *, attempt: int) -> GivenUp:
        """Return the event that says what it cost for nothing, once all children are back.

        Args:
            attempt: guesses for its iteration that were given up before.
        """
        wasted = [response.generation for response in self.request.responses]
        return GivenUp(
            iteration=self.proposal.iteration,
            attempt=attempt,
            island=self.proposal.island,
            parent=self.proposal.parent.id,
            generated_tokens=sum(each.generated_tokens for each in wasted),
            prompt_tokens=sum(each.prompt_tokens for each in wasted),
            cached_prompt_tokens=sum(each.cached_prompt_tokens for each in wasted),
            llm_seconds=sum(each.llm_seconds for each in wasted),
        )


@dataclass(kw_only=True)
class SpeculativeCalls(Calls):
    """`Calls`, and guesses of those that come after them.

    Attributes:
        settings: the run's.
        reader: reads the children of guesses.
        allowance: says which children the budget would still admit.
        steering: says whether the run is paused.
    """

    settings: RunSettings
    reader: Reader
    allowance: Allowance
    steering: Steering

    def __post_init__(self) -> None:
        super().__post_init__()
        self._shows_pending = self.settings.prompts.shows_pending
        # By island, of its next call, the one after it, and so on:
        self._guesses: defaultdict[int, list[Guess]] = defaultdict(list)
        self._given_up: list[Guess] = []  # whose children are not all back
        self._verdicts = len(self.state.history.verdicts)

    @property
    def in_flight(self) -> int:
        """Calls of which something is still to be recorded."""
        return super().in_flight + sum(map(len, self._guesses.values())) + len(self._given_up)

    def ask(self, *, candidates: int) -> bool:
        """Begin what the search asks for, and guesses as long as there still is room."""
        has_room = super().ask(candidates=candidates)
        while has_room and (island := self._guessable_island()) is not None and self._would_count():
            has_room = self._begin(island) and self.pressure.has_room(
                children=self.children, candidates=candidates
            )
        return has_room

    def received(self) -> Iterator[tuple[Request, Response]]:
        """Yield what has come back of the calls, and of the guesses that have now come true."""
        yield from super().received()
        self._record_given_up()
        news = self._news()
        # What the children are found to be may decide on further guesses.
        while not self.allowance.is_spent and (confirmed := self._judge(news)):
            news = set()
            for request in confirmed:
                for response in tuple(request.responses):
                    yield request, response

    def wind_up(self) -> None:
        """Give up all guesses, and end all calls: their children come back with what they have."""
        self._give_up_all()
        super().wind_up()

    def abandon(self) -> None:
        """Give up all guesses, and forget all calls."""
        self._give_up_all()
        super().abandon()

    # Beginning.

    def _guessable_island(self) -> int | None:
        """Return an island to guess for: its calls are decoded, and verdicts are out."""
        state = self.state
        free = {
            island
            for island in range(self.state.search.islands)
            if state.is_open(island)
            and len(self._guesses[island]) < self.settings.pipeline.ahead
            and not any(guess.request.left for guess in self._guesses[island])
        } - self.islands
        return state.next_of(free)

    def _would_count(self) -> bool:
        """Whether the budget admits more candidates than the guesses under way will bring."""
        left = self.allowance.candidates_left
        guesses = [*itertools.chain.from_iterable(self._guesses.values())]
        if left is None or left > sum(guess.children for guess in guesses):
            return True
        return left > len(self._pending(guesses))

    def _begin(self, island: int) -> bool:
        """Begin what the search will probably ask for; return False if its children do not fit."""
        guesses = self._guesses[island]
        ahead = self._pending(guesses) if self._shows_pending else ()
        proposal = self.state.search.ask(
            self.number(island, after=len(guesses)),
            island=island,
            ahead=ahead,
            begun=[guess.proposal for guess in guesses],
        )
        if not self.pressure.fits(proposal.k, beside=self.children):
            return False
        request = self.requests.compose(proposal)
        guesses.append(Guess(request=request, ahead=tuple(each.id for each in ahead)))
        return True

    def _pending(self, guesses: Iterable[Guess]) -> tuple[Pending, ...]:
        """Return the candidates that guesses will bring if they come true, by what is known now.

        In the order of the guesses and of the children in them.
        """
        return tuple(
            Pending(id=child.id, program=child.program.text)
            for guess in guesses
            for response in sorted(guess.request.responses, key=lambda each: each.children)
            for child in self.reader.children(guess.request, response)
            if child.program is not None and child.refusal is None
        )

    # Judging.

    def _news(self) -> set[int]:
        """Return the islands for whose candidates verdicts have come in since the last time."""
        history = self.state.history
        known, self._verdicts = self._verdicts, len(history.verdicts)
        new = itertools.islice(reversed(history.verdicts), self._verdicts - known)
        return {history.island_of(each) for each in new}

    def _judge(self, news: Collection[int]) -> list[Request]:
        """Confirm or give up each guess that has been decided, or is no longer likely.

        Args:
            news: islands for which verdicts have come in since the last time.

        Returns:
            The requests of the guesses that came true.
        """
        confirmed = []
        for island in range(self.state.search.islands):
            guesses = self._guesses[island]
            if guesses and not self.state.is_open(island):
                asked = self.state.search.ask(guesses[0].proposal.iteration, island=island)
                if guesses[0].comes_true(asked):
                    confirmed.append(self._confirm(guesses.pop(0), rule=asked.rule))
                else:
                    self._correct(island, asked)
            elif island in news:
                self._review(island)
        return confirmed

    def _correct(self, island: int, asked: Proposal) -> None:
        """Give up the first guess, which was wrong, and begin the call that was asked for.

        Those after it may still be right, unless they show children of this one. In a pause the
        call can't begin, and they may not before it.
        """
        if self.steering.is_paused:
            self._give_up(island, slice(None))
            return
        self._give_up(island, slice(None if self._shows_pending else 1))
        self.begin(asked)
        self._review(island)

    def _review(self, island: int) -> None:
        """Give up the first guess that is no longer likely, and all after it.

        Further verdicts would hardly change that.
        """
        guesses = self._guesses[island]
        for position, guess in enumerate(guesses):
            expected = self.state.search.ask(
                guess.proposal.iteration,
                island=island,
                begun=[each.proposal for each in guesses[:position]],
            )
            if not guess.comes_true(expected):
                self._give_up(island, slice(position, None))
                return

    def _confirm(self, guess: Guess, *, rule: str) -> Request:
        """Record the call of a guess that came true: the parent was drawn by ``rule``."""
        request = guess.request
        request.proposal = dataclasses.replace(request.proposal, rule=rule)
        self.take_over(request, guess.call())
        return request

    def _give_up_all(self) -> None:
        for island in self._guesses:
            self._give_up(island, slice(None))

    def _give_up(self, island: int, which: slice) -> None:
        """Drop guesses; what they cost is recorded when their children are back."""
        for guess in self._guesses[island][which]:
            self.requests.drop(guess.request)
            self._given_up.append(guess)
        del self._guesses[island][which]
        self._record_given_up()

    def _record_given_up(self) -> None:
        for guess in [each for each in self._given_up if not each.request.left]:
            self._given_up.remove(guess)
            attempt = self.state.history.attempts[guess.proposal.iteration]
            self.record(guess.given_up(attempt=attempt))


def _asked_for(proposal: Proposal) -> tuple[str | None, ...]:
    return proposal.parent.id, proposal.operator, proposal.partner_id, proposal.repairs_id

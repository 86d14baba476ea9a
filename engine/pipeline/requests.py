"""The requests at the model: composed of proposals, sent, and read when they are answered.

Covers: what happens between a proposal and the responses to it. Does not cover who asks, or when
(``calls.py``).
"""

import itertools
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TypeVar

from engine.core import Generation, Parsed, Prompt, Proposal
from engine.inference import CallMisses, Decoding, MissLedger
from engine.pipeline.request import Request, Response, spread
from engine.prompts import Operator
from engine.settings import RunSettings
from engine.store import Event, RunHistory
from engine.syntax.workers import WorkerDied
from engine.timeline import Activity, Timeline

_log = logging.getLogger("brood")

R = TypeVar("R", bound=Request)


@dataclass(kw_only=True)
class Requests:
    """Composes requests, sends them to the decoder, and takes the responses back.

    Attributes:
        settings: the run's.
        history: the run's, as far as it is recorded; it may grow.
        operators: by name.
        block_size: of the model's prefix cache, in tokens.
        decoder: decodes what is sent.
        syntax: processes that parse what comes back; see `engine.syntax.workers`.
        timeline: records what the model waits for.
        notify: called, in whatever thread, when something is parsed.
        seconds: that the last request took which was not dropped; None before the first.
    """

    settings: RunSettings
    history: RunHistory
    operators: Mapping[str, Operator]
    block_size: int
    decoder: Decoding
    syntax: Executor
    timeline: Timeline
    notify: Callable[[], object]
    seconds: float | None = None

    def __post_init__(self) -> None:
        self._misses = MissLedger(block_size=self.block_size)
        self._sent: dict[int, Request] = {}
        self._composed: list[Request] = []  # and not sent
        self._parsing: deque[tuple[Request, Generation, Future[Sequence[Parsed]]]] = deque()
        self._tickets = itertools.count()

    @property
    def children(self) -> int:
        """How many are at the model, or about to be sent there."""
        return self.decoder.in_flight + sum(request.left for request in self._composed)

    @property
    def versions(self) -> Collection[int]:
        """The versions of the adapter that the requests under way are decoded with."""
        return {request.adapter for request in (*self._sent.values(), *self._composed)}

    def compose(self, proposal: Proposal) -> Request:
        """Return the request for those children of a proposal that are not recorded yet.

        The next `send` sends it.
        """
        if not self.children:
            self.timeline.model.begin(Activity.AWAIT_PARENT, iteration=proposal.iteration)
        request = self._request(proposal)
        self._composed.append(request)
        return request

    def _request(self, proposal: Proposal) -> Request:
        prompt = self.operators[proposal.operator].compose(proposal)
        return self._made(Request, proposal, prompt)

    def _misses_of(self, prompt: Prompt, proposal: Proposal, *, adapter: int) -> CallMisses:
        """Begin the account of a prompt whose answers come from a version of the adapter."""
        return self._misses.begin(
            prompt,
            island=proposal.island,
            compactions=proposal.compactions,
            adapter=adapter if self.settings.learning.adapter == "full" else 0,
        )

    def _made(self, kind: type[R], proposal: Proposal, prompt: Prompt) -> R:
        call = self.history.calls.get(proposal.iteration)
        adapter = self.history.adapter if call is None else call.adapter
        return kind(
            ticket=next(self._tickets),
            proposal=proposal,
            operator=self.operators[proposal.operator],
            prompt=prompt,
            sampling=spread(self.settings.search, proposal, prompt),
            numbers=range(proposal.k) if call is None else self.history.missing(call),
            misses=self._misses_of(prompt, proposal, adapter=adapter),
            known=self.history.events,
            adapter=adapter,
            learns=self.settings.learning.method != "none",
        )

    def send(self) -> None:
        """Send the requests that were composed since the last time to the decoder."""
        for request in self._composed:
            if not request.is_dropped:
                self._sent[request.ticket] = request
                self._submit(request)
        self._composed.clear()

    def received(self) -> Iterator[tuple[Request, Response]]:
        """Yield what has come back since the last time; dropped requests are included."""
        for request, generation in self._completed():
            work = _nothing if request.is_dropped else request.parsing(generation)
            parsing = self.syntax.submit(work)
            parsing.add_done_callback(lambda _: self.notify())
            self._parsing.append((request, generation, parsing))
        # In the order of the decoder: of two equal children the later one is the copy, whichever
        # was parsed first.
        while self._parsing and self._parsing[0][2].done():
            request, generation, parsing = self._parsing.popleft()
            response = request.receive(generation, _parsed(parsing))
            if request.asks_again:
                self._submit(request)
            if not request.left:
                del self._sent[request.ticket]
                self._misses.end(request.misses)
                if not request.is_dropped:
                    self.seconds = request.seconds
            yield request, response

    def ask(self) -> None:
        """Have the next `send` send what no call asks, if it is due; not while a run is paused."""

    def news(self) -> Sequence[Event]:
        """Return events that no call's child is about; record them."""
        return ()

    def abort(self, request: Request) -> None:
        """End a request: its children come back with what they have."""
        self.decoder.abort(request.ticket)

    def drop(self, request: Request) -> None:
        """End a request whose children nobody waits for; its responses are not read."""
        request.is_dropped = True
        self.abort(request)

    def _completed(self) -> Iterator[tuple[Request, Generation]]:
        """Yield what was decoded since the last time; its index is that among the request's."""
        for ticket, generation in self.decoder.completed():
            yield self._sent[ticket], generation

    def _submit(self, request: Request) -> None:
        self.decoder.submit(
            request.ticket,
            iteration=request.proposal.iteration,
            token_ids=request.prompt.token_ids,
            sampling=request.unsent,
            adapter=request.adapter,
            is_over=self._ending(request),
        )

    def _ending(self, request: Request) -> Callable[[str], bool]:
        """Return what says whether one of a request's answers need not go on."""
        return request.is_over if self.settings.pipeline.end_early else never


def _nothing() -> Sequence[Parsed]:
    """Parse nothing: nobody waits for the children."""
    return ()


def _parsed(parsing: Future[Sequence[Parsed]]) -> Sequence[Parsed]:
    try:
        return parsing.result()
    except WorkerDied:
        _log.warning("a completion ended the process that was to parse it; it counts as unparsed")
        return (Parsed(program=None),)


def never(text: str) -> bool:
    """Let a child go on to its end."""
    return False

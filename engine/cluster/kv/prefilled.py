"""A decoder whose prompts are computed elsewhere: in a process that has nothing else to do.

The steps of a decoder are then not held up by long prompts. The other process leaves the KV in the
machine's LMCache server, where the decoder's engine finds it when the call begins. So whatever
fails, the call begins all the same, and its prompt is computed here.
"""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

from engine.core import Generation
from engine.inference import Decoding, IsOver, Sampling

_MOST_WAITING = 4  # prompts; with more, this process is the quicker one
_PATIENCE = 10.0  # seconds for which an answer is waited for
_log = logging.getLogger("brood")


class Prefilling(Protocol):
    """A process that computes prompts."""

    def prefill(self, token_ids: Sequence[int]) -> "Future[None]":
        """Begin to compute a prompt; the result says when its KV is there, or why it is not."""


@dataclass(kw_only=True, slots=True)
class _Waiting:
    """A call whose prompt is computed elsewhere."""

    begin: Callable[[], None]
    children: int
    since: float


class PrefilledDecoder:
    """See the module, and `Decoding`. One thread uses it."""

    def __init__(self, decoder: Decoding, *, notify: Callable[[], object]) -> None:
        """Have nobody to compute prompts.

        Args:
            decoder: begins the calls.
            notify: called, in another thread, when a call may begin.
        """
        self._decoder = decoder
        self._notify = notify
        self._prefiller: Prefilling | None = None
        self._waiting: dict[int, _Waiting] = {}
        self._answered: SimpleQueue[tuple[int, Future[None]]] = SimpleQueue()

    def use(self, prefiller: Prefilling | None) -> None:
        """Have prompts computed by a process; None for here."""
        self._prefiller = prefiller

    @property
    def in_flight(self) -> int:
        """See `Decoding.in_flight`."""
        return self._decoder.in_flight + sum(each.children for each in self._waiting.values())

    def submit(
        self,
        call: int,
        *,
        iteration: int,
        token_ids: Sequence[int],
        sampling: Sequence[Sampling],
        is_over: IsOver,
        adapter: int = 0,
    ) -> None:
        """See `Decoding.submit`."""
        begin = partial(
            self._decoder.submit,
            call,
            iteration=iteration,
            token_ids=token_ids,
            sampling=sampling,
            is_over=is_over,
            adapter=adapter,
        )
        # KV under an adapter is another one's.
        if self._prefiller is None or adapter or len(self._waiting) >= _MOST_WAITING:
            begin()
            return
        self._waiting[call] = _Waiting(begin=begin, children=len(sampling), since=time.monotonic())
        self._prefiller.prefill(token_ids).add_done_callback(partial(self._come, call))

    def adopt(self, version: int, folder: Path) -> None:
        """See `Decoding.adopt`."""
        self._decoder.adopt(version, folder)

    def adopted(self) -> list[tuple[int, float]]:
        """See `Decoding.adopted`."""
        return self._decoder.adopted()

    def abort(self, call: int) -> None:
        """See `Decoding.abort`."""
        self._begin(call)
        self._decoder.abort(call)

    def completed(self) -> list[tuple[int, Generation]]:
        """See `Decoding.completed`."""
        for call, answer in [self._answered.get() for _ in range(self._answered.qsize())]:
            if (error := answer.exception()) is not None:
                self._go_without(str(error).partition("\n")[0])
            self._begin(call)
        late = time.monotonic() - _PATIENCE
        for call in [call for call, each in self._waiting.items() if each.since < late]:
            self._go_without(f"no answer within {_PATIENCE:.0f} s")
            self._begin(call)
        return self._decoder.completed()

    def _come(self, call: int, answer: "Future[Any]") -> None:
        self._answered.put((call, answer))
        self._notify()

    def _begin(self, call: int) -> None:
        if (waiting := self._waiting.pop(call, None)) is not None:
            waiting.begin()

    def _go_without(self, reason: str) -> None:
        if self._prefiller is not None:
            self._prefiller = None
            _log.warning("prompts are computed here again, not elsewhere: %s", reason)

"""Whether an engine's LMCache server is still of use to it.

Covers: giving the server up, for good and with one warning, when an answer is late or wrong. Does
not cover noticing that: ``kv_connector.py``.

LMCache's adapters are made to wait for a server that comes back. A search gains more from going on
at once, and prompts that are computed again cost it little.

A server of our own that was given up is killed: if it is only slow, it would otherwise go on
writing into blocks of a GPU's memory that the engine has given to others.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import weakref
from typing import Any, ClassVar

ANSWER_SECONDS = 1.0
"""How long an answer of the server may take once the engine has started."""

_log = logging.getLogger(__name__)


class ServerHealth:
    """What one engine knows of its server.

    vLLM makes two connectors, for its scheduler and for its worker; in one process they share
    this.
    """

    _of_engines: ClassVar[weakref.WeakValueDictionary[str, ServerHealth]] = (
        weakref.WeakValueDictionary()
    )

    def __init__(self, *, pid: int | None) -> None:
        """``pid``: of a server of our own."""
        self._pid = pid
        self._adapters: list[Any] = []
        self.given_up = False

    @classmethod
    def of(cls, engine_id: str, *, pid: int | None) -> ServerHealth:
        """Return the one of an engine of this process."""
        health = cls._of_engines.get(engine_id)
        if health is None:
            health = cls._of_engines[engine_id] = cls(pid=pid)
        return health

    def reached_by(self, adapter: Any) -> None:
        """Note an adapter of LMCache's that talks to the server, and bound what it waits."""
        adapter._mq_timeout = ANSWER_SECONDS
        # Its heartbeat would find a failure no sooner than the next request does, and would
        # bring a server back that was given up.
        adapter._ensure_heartbeat_started = _nothing
        self._adapters.append(adapter)

    def give_up(self, reason: object) -> None:
        """Go on without the server from now on."""
        if self.given_up:
            return
        self.given_up = True
        _log.warning("the LMCache server failed (%s); the run goes on without it", reason)
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        for adapter in self._adapters:
            for event in _well(adapter):
                event.clear()  # LMCache's own way to say that there is no server


def _well(adapter: Any) -> list[Any]:
    """Return the events by which an adapter of LMCache's knows that its server is well."""
    events = getattr(adapter, "_health_events", None)
    return list(events.values()) if events is not None else [adapter._health_event]


def _nothing() -> None:
    """Stand in for a method that is not wanted."""

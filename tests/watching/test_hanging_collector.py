"""A collector of spans that takes connections and never answers."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from engine import config
from engine.core import Direction
from engine.store import Event, RunHistory, Session
from engine.watching import otlp


class Plain:
    """Stands in for `Spans`: each event is one."""

    def __init__(self, **of_run: object) -> None:
        pass

    def take(self, events: Sequence[Event], *, now: int) -> list[dict[str, Any]]:
        return [{"name": each.KIND} for each in events]


def test_a_collector_that_hangs_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It had as many seconds for each request of all that still waited."""
    batches = 40
    for seconds in ("_SECONDS", "_SECONDS_AT_END"):
        monkeypatch.setattr(otlp, seconds, 0.5)
    monkeypatch.setattr(otlp, "_MOST_SPANS", 1)  # each batch is a request
    monkeypatch.setattr(otlp, "Spans", Plain)
    with socket.create_server(("127.0.0.1", 0), backlog=2 * batches) as hangs:
        target = f"http://127.0.0.1:{hangs.getsockname()[1]}"
        settings = config.resolve(["model=mutation", f"opentelemetry={target}"])
        history = RunHistory(direction=Direction.MAXIMISE)
        with otlp.exporting(settings, run="one", session=0, history=history) as take:
            for _ in range(batches):
                take([Session(number=0, engine="0", fingerprint="f")])
        hangs.setblocking(False)
        requests = 0
        with suppress(BlockingIOError):
            while True:
                hangs.accept()[0].close()
                requests += 1
    assert 0 < requests < batches / 2
    said = [each.getMessage() for each in caplog.records if "spans" in each.getMessage()]
    assert said == [
        f"spans are lost: {target}: timed out",
        f"{batches} spans were lost: {target} did not take them",
    ]

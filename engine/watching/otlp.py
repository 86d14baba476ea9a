"""Where spans go: a file of JSON lines, or a collector on this machine, both as OTLP in JSON.

A file has a request of OTLP on each line, as the OTLP File Exporter's specification says. A
collector gets the same by HTTP, from a thread of its own, without a proxy, and no redirect is
followed: what it does with the spans is its owner's business. If a file can't be written or a
collector does not answer, that is one warning, and the spans are lost: the run's log has it all.
"""

import http.client
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import engine
from engine.core import Event, UserError
from engine.settings import RunSettings
from engine.store import RunHistory
from engine.watching.local import is_local, log
from engine.watching.spans import Span, Spans, attributes

_PATH = "/v1/traces"
_SECONDS = 5.0  # that a collector may take for an answer
_SECONDS_AT_END = 5.0  # in which what still waits is sent to it
_MOST_BATCHES = 1000  # that wait for it
_MOST_SPANS = 512  # of a request
Send = Callable[[list[Span]], None]


def check_target(target: str) -> None:
    """Check where spans are to go; nothing is left there.

    Raises:
        UserError: it is no file that can be written, and no address of this machine.
    """
    if "://" in target:
        _address(target)
        return
    try:
        is_new = not Path(target).exists()
        with Path(target).open("ab"):
            pass
        if is_new:
            Path(os.path.realpath(target)).unlink()  # where a link leads, and not the link
    except OSError as error:
        raise UserError(f"opentelemetry={target} can't be written: {error.strerror}") from error


@contextmanager
def exporting(
    settings: RunSettings, *, run: str, session: int, history: RunHistory
) -> Iterator[Callable[[Sequence[Event]], None]]:
    """Export the spans of a session while the block lasts; yield what is told the events.

    Raises:
        UserError: see `check_target`.
    """
    target = settings.opentelemetry
    assert target is not None
    check_target(target)
    of_run = {
        "service.name": "brood",
        "service.version": engine.__version__,
        "brood.run": run,
        "brood.session": session,
        "brood.problem": Path(settings.problem).name,
        "brood.model": settings.model.name,
    }
    open_target = _to_collector if "://" in target else _to_file
    spans = Spans(run=run, session=session, history=history, now=time.time_ns())
    with open_target(target, of_run) as send:

        def take(events: Sequence[Event]) -> None:
            over = spans.take(events, now=time.time_ns())
            if over:
                send(over)

        yield take


def request(spans: Sequence[Span], of_run: Mapping[str, Any]) -> str:
    """Return spans as a request of OTLP, in JSON, without a line's end."""
    scope = {"name": "brood", "version": engine.__version__}
    of_all = {
        "resource": {"attributes": attributes(of_run)},
        "scopeSpans": [{"scope": scope, "spans": list(spans)}],
    }
    return json.dumps({"resourceSpans": [of_all]}, separators=(",", ":"), allow_nan=False)


@contextmanager
def _to_file(target: str, of_run: Mapping[str, Any]) -> Iterator[Send]:
    with Path(target).open("ab", buffering=0) as file:
        is_sound = True

        def send(spans: list[Span]) -> None:
            nonlocal is_sound
            if is_sound:
                try:
                    file.write(f"{request(spans, of_run)}\n".encode())
                except OSError as error:
                    is_sound = False
                    log.warning("no more spans: %s can't be written: %s", target, error.strerror)

        yield send


@contextmanager
def _to_collector(target: str, of_run: Mapping[str, Any]) -> Iterator[Send]:
    sender = _Sender(target, of_run)
    thread = threading.Thread(target=sender.run, name="opentelemetry", daemon=True)
    thread.start()
    try:
        yield sender.put
    finally:
        sender.end()
        thread.join()


class _Sender:
    """Sends what waits, from a thread of its own."""

    def __init__(self, target: str, of_run: Mapping[str, Any]) -> None:
        self._target, self._of_run = target, of_run
        self._host, self._port, self._path = _address(target)
        self._waiting: queue.Queue[list[Span] | None] = queue.Queue(_MOST_BATCHES)
        self._until = float("inf")
        self._lost = 0
        self._said = False

    def put(self, spans: list[Span]) -> None:
        """Have spans sent, unless too many wait already."""
        try:
            self._waiting.put_nowait(spans)
        except queue.Full:
            self._lost += len(spans)

    def end(self) -> None:
        """Send what waits, as far as the collector takes it within some seconds, and end."""
        self._until = time.monotonic() + _SECONDS_AT_END
        self._waiting.put(None)

    def run(self) -> None:
        """Send until the end."""
        is_last = False
        while not is_last:
            batch = self._waiting.get()
            spans = batch or []
            is_last = batch is None
            while not is_last and len(spans) < _MOST_SPANS and not self._waiting.empty():
                more = self._waiting.get()
                is_last = more is None
                spans = [*spans, *(more or [])]
            if spans and time.monotonic() < self._until:
                self._send(spans)
            else:
                self._lost += len(spans)
        if self._lost:
            log.warning("%d spans were lost: %s did not take them", self._lost, self._target)

    def _send(self, spans: list[Span]) -> None:
        body = request(spans, self._of_run).encode()
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_SECONDS)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", self._path, body=body, headers=headers)
            answer = connection.getresponse()
            answer.read()
            why = None if answer.status == 200 else f"it answered {answer.status}"
        except (OSError, http.client.HTTPException) as error:
            why = str(error)
        finally:
            connection.close()
        if why is not None:
            self._lost += len(spans)
            if not self._said:
                self._said = True
                log.warning("spans are lost: %s: %s", self._target, why)


def _address(target: str) -> tuple[str, int, str]:
    """Return host, port and path of a collector.

    Raises:
        UserError: it is not one on this machine.
    """
    must = (
        f"opentelemetry is {target!r}; it must be a file, or a collector on this machine, as in "
        "http://127.0.0.1:4318: what goes further is that one's business"
    )
    try:
        parts = urlsplit(target)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UserError(must) from error
    if parts.scheme != "http" or host is None or "@" in parts.netloc or not is_local(parts.netloc):
        raise UserError(must)
    return host, port or 4318, parts.path.rstrip("/") or _PATH

"""The live page as ``python -m engine.dashboard`` serves it, and runs to show."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hand_log import recorded, settings_of

from engine import config
from engine.store import EventLog, Recorded, create_run

SECONDS = 300.0


@dataclass
class Page:
    """A server.

    Attributes:
        port: that it listens at.
        token: that it printed.
        process: that it is.
    """

    port: int
    token: str
    process: subprocess.Popen[str]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Return the status, the headers and the body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(method, path, content, headers or {})
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, named, answer.read()
        finally:
            connection.close()

    def told(self, path: str) -> Iterator[tuple[str, Any]]:
        """Yield the events that the server sends to an address."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request("GET", path)
            answer, name = connection.getresponse(), ""
            assert answer.status == 200
            deadline = time.monotonic() + SECONDS
            while line := answer.readline().decode():
                assert time.monotonic() < deadline, "nothing was told"
                key, _, value = line.rstrip("\r\n").partition(": ")
                if key == "event":
                    name = value
                elif key == "data":
                    yield name, json.loads(value)
        finally:
            connection.close()

    def steer(self, name: str, kind: str, text: str = "", *, token: str | None = None) -> int:
        """Ask something of a run; return the status."""
        headers = {"X-Brood-Token": self.token if token is None else token}
        body = {"kind": kind, "text": text}
        return self.ask(f"/steer/{name}", method="POST", body=body, headers=headers)[0]


@contextmanager
def served(runs: Path) -> Iterator[Page]:
    """Serve the runs of a folder."""
    for _ in range(5):  # meanwhile somebody else may get the port
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        process = subprocess.Popen(
            [sys.executable, "-m", "engine.dashboard", str(runs), f"port={port}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        if line := process.stdout.readline():
            break
        process.wait(SECONDS)
    try:
        assert line
        yield Page(port=port, token=line.strip().partition("#token=")[2], process=process)
    finally:
        process.terminate()
        process.wait(SECONDS)


def hand_folder(folder: Path, *arguments: str, events: list[Recorded] | None = None) -> Path:
    """Make the folder of the run written by hand."""
    first, *others = [each.event for each in (recorded() if events is None else events)]
    second, *rest = others
    settings = settings_of(*arguments)
    create_run(folder, write_config=lambda to: config.save(settings, to), events=(first, second))
    with EventLog(folder, session=0) as log:
        for event in rest:
            log.append(event)
        log.commit()
    return folder

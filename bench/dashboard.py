"""Question: how long does the live page take to show what a run has just recorded?

Method: a run is made as in ``bench.report``, and copied until there are ``runs``. ``python -m
engine.dashboard`` serves them in a process of its own; two listeners stand for a browser with the
table of all runs, and one with the page of the run that grows. Once everything is read, events of
``rate`` candidates a second are appended to that run for ``seconds``, ten commits a second, made
beforehand. Three figures: the seconds of a refresh and of making all figures, as the server counts
them, and for each candidate the time from its commit until the table had it, which has the pause
of 1 s between two refreshes in it. ``first`` is the time until all logs were read once.

Usage: python -m bench.dashboard [runs=20] [candidates=2000] [rate=50] [seconds=30]
       [problem=circle_packing]
The last line printed is JSON.
"""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import milliseconds
from bench.options import number, read_options, run_as_command, whole_number
from bench.report import Search, make_run
from engine.problem import chosen_problem
from engine.store import Event, EventLog, Verdict

_DEFAULTS = {
    **{"runs": "20", "candidates": "2000", "rate": "50", "seconds": "30"},
    "problem": "circle_packing",
}
_COMMITS = 10  # a second
_LAST = 15.0  # seconds until the last candidate has to be shown


def main(arguments: Sequence[str]) -> None:
    """Make the runs, serve them, let one grow and print what that took."""
    options = read_options(arguments, _DEFAULTS, usage=__doc__ or "")
    runs, candidates, rate = (whole_number(options, k) for k in ("runs", "candidates", "rate"))
    problem = chosen_problem({"problem": options["problem"]})
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        search = make_run(folder / "run-0", problem, candidates)
        for count in range(1, runs):
            shutil.copytree(folder / "run-0", folder / f"run-{count}")
        commits = list(_commits(search, rate, number(options, "seconds")))
        found = _measured(folder, commits, candidates)
    print(json.dumps({"runs": runs, "candidates": candidates, "rate": rate, **found}))


def _commits(search: Search, rate: int, seconds: float) -> Iterator[list[Event]]:
    """Yield the events of each commit."""
    first, fresh = search.evaluated, list[Event]()
    for commit in range(int(seconds * _COMMITS)):
        wanted = first + (commit + 1) * rate // _COMMITS
        while search.evaluated < wanted:
            fresh += search.call(wanted)
        yield fresh
        fresh = []


@dataclass
class _Listener:
    """Listens to one address of the server, in a thread."""

    port: int
    path: str
    told: list[tuple[float, str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", self.path)
        answer, name = connection.getresponse(), ""
        while line := answer.readline().decode():
            key, _, value = line.rstrip("\r\n").partition(": ")
            if key == "event":
                name = value
            elif key == "data":
                self.told.append((time.monotonic(), name, json.loads(value)))


def _measured(folder: Path, commits: Sequence[Sequence[Event]], candidates: int) -> dict[str, Any]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "engine.dashboard", str(folder), f"port={port}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        began = time.monotonic()
        table = _Listener(port, "/events")
        page = _Listener(port, "/follow/run-0")
        while not table.told or any(run["reading"] for run in table.told[-1][2]["runs"]):
            time.sleep(0.05)
        first = table.told[-1][0] - began
        began = time.monotonic()
        written = _grow(folder / "run-0", commits, candidates)
        deadline = time.monotonic() + _LAST
        while _counts(table)[-1][1] < written[-1][1] and time.monotonic() < deadline:
            time.sleep(0.05)
        rows = [told for at, _, told in table.told if at > began]
        figures = [told for at, name, told in page.told if at > began and name == "figures"]
        return {
            "written": written[-1][1] - candidates,
            "first_seconds": round(first, 1),
            "refresh_ms": milliseconds([each["seconds"] for each in rows]),
            "figures_ms": milliseconds([each["seconds"] for each in figures]),
            "shown_after_ms": milliseconds(_delays(written, _counts(table))),
        }
    finally:
        process.terminate()
        process.wait()


def _grow(
    folder: Path, commits: Sequence[Sequence[Event]], candidates: int
) -> list[tuple[float, int]]:
    """Append the events; return when so many candidates were on disk."""
    written = []
    with EventLog(folder) as log:
        began = time.monotonic()
        for count, events in enumerate(commits):
            time.sleep(max(0.0, began + count / _COMMITS - time.monotonic()))
            for event in events:
                log.append(event)
                candidates += isinstance(event, Verdict)
            log.commit()
            written.append((time.monotonic(), candidates))
    return written


def _counts(table: _Listener) -> list[tuple[float, int]]:
    """Return how many candidates the growing run had in the table, and when."""
    return [
        (at, run.get("candidates", 0))
        for at, _, told in table.told
        for run in told["runs"]
        if run["name"] == "run-0"
    ]


def _delays(
    written: Sequence[tuple[float, int]], shown: Sequence[tuple[float, int]]
) -> list[float]:
    """Return how long each commit took to be shown; those that never were took all the time."""
    return [
        next((at for at, count in shown if count >= wanted), shown[-1][0] + _LAST) - since
        for since, wanted in written
    ]


if __name__ == "__main__":
    run_as_command(main)

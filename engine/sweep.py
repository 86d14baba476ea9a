"""Sweeps: a run for every combination of values, one after the other.

Each run is a process of its own: it has the whole machine, and the next one starts afresh. The runs
lie in one folder, ``name`` under ``runs``, each named by the values that set it apart.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from engine import config
from engine.core import UserError
from engine.interrupt import handled
from engine.section import in_a_line
from engine.settings import RunSettings

_INTERRUPTED = 130
_log = logging.getLogger("brood")


def sweep(arguments: Sequence[str]) -> int:
    """Run every combination; return the first exit code that is not 0.

    Raises:
        UserError: one of the runs can't begin as it is configured; none has then.
    """
    jobs = config.expand(arguments)
    settings = [config.resolve(job) for job in jobs]
    parent = Path(settings[0].runs) / (settings[0].name or time.strftime("multirun-%Y%m%d-%H%M%S"))
    if parent.exists():
        raise UserError(f"{parent} exists; give another name=")
    names = _names(jobs, settings)
    codes = []
    processes = _Processes()
    with handled(processes.hear, signal.SIGINT, signal.SIGTERM):
        for number, (job, name) in enumerate(zip(jobs, names, strict=True), start=1):
            _log.info("run %d of %d: %s", number, len(jobs), name)
            place = (f"runs={config.quoted(str(parent))}", f"name={config.quoted(name)}")
            codes.append(processes.run([sys.executable, "-m", "engine.run", *job, *place]))
            if processes.told or codes[-1] == _INTERRUPTED:
                return _INTERRUPTED  # Ctrl-C ends the sweep, not one run of it
    return next((code for code in codes if code != 0), 0)


def _names(jobs: Sequence[Sequence[str]], settings: Sequence[RunSettings]) -> list[str]:
    """Return the names of the runs' folders, in the jobs' order.

    Raises:
        UserError: two are equal, or one can't be a folder's.
    """
    common = set(jobs[0]).intersection(*jobs)
    names = [
        "_".join(each for each in job if each not in common).replace("/", "-") or "only"
        for job in jobs
    ]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise UserError(f"{count} runs of the sweep would be named {name!r}; give a value once")
    for name, each in zip(names, settings, strict=True):
        try:
            replace(each, name=name)
        except ValidationError as error:
            line = in_a_line(error, kind=RunSettings)
            raise UserError(f"a sweep names its runs by the values that differ: {line}") from error
    return names


class _Processes:
    """Runs one process after the other, and outlives each of them.

    A signal ends the running process, and with it the sweep. A terminal sends Ctrl-C to both;
    SIGTERM is handed on.
    """

    def __init__(self) -> None:
        self.told: list[int] = []  # signals that have come
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, command: Sequence[str]) -> int:
        """Return the exit code of a process, once it has ended."""
        with subprocess.Popen(command) as process:
            self._process = process
            if signal.SIGTERM in self.told:  # while it was being started
                process.terminate()
            code = process.wait()
            self._process = None
            return code

    def hear(self, number: int, frame: object) -> None:
        """Take in a signal."""
        self.told.append(number)
        if number == signal.SIGTERM and self._process is not None:
            self._process.terminate()

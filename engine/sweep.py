"""Sweeps: a run for every combination of values, one after the other.

Each is a process of its own, which gives it the whole machine and leaves the next one nothing. The
runs lie in one folder, ``name`` under ``runs``, each under the values that set it apart.
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
from types import TracebackType
from typing import Self

from engine import config
from engine.bounds import check
from engine.core import UserError
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
    with _Processes() as processes:
        for number, (job, name) in enumerate(zip(jobs, names, strict=True), start=1):
            _log.info("run %d of %d: %s", number, len(jobs), name)
            place = (f"runs={config.quoted(str(parent))}", f"name={config.quoted(name)}")
            codes.append(processes.run([sys.executable, "-m", "engine.run", *job, *place]))
            if processes.is_told or codes[-1] == _INTERRUPTED:
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
            check(replace(each, name=name))
        except UserError as error:
            raise UserError(f"a sweep names its runs by the values that differ: {error}") from error
    return names


class _Processes:
    """Runs one process after the other, and outlives each of them; a context manager.

    A signal is for the process that runs to heed, and the sweep ends with that. A terminal sends
    Ctrl-C to both; SIGTERM is handed on.
    """

    def __init__(self) -> None:
        self._told: list[int] = []
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_told(self) -> bool:
        """Whether a signal has come."""
        return bool(self._told)

    def run(self, command: Sequence[str]) -> int:
        """Return the exit code of a process, once it has ended."""
        with subprocess.Popen(command) as process:
            self._process = process
            if signal.SIGTERM in self._told:  # while it was being started
                process.terminate()
            code = process.wait()
            self._process = None
            return code

    def __enter__(self) -> Self:
        signals = (signal.SIGINT, signal.SIGTERM)
        self._before = {each: signal.signal(each, self._hear) for each in signals}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def _hear(self, number: int, frame: object) -> None:
        self._told.append(number)
        if number == signal.SIGTERM and self._process is not None:
            self._process.terminate()

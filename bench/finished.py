"""Runs that a benchmark has finished: a JSON line in a file for each, for when it is started again.

A line says with which options its run was made, beside what tells the runs of one command apart.
Lines of other options stay in the file and are passed over, as are those of earlier versions, which
do not say it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any


def shared_options(options: Mapping[str, str], *, apart: Collection[str]) -> dict[str, str]:
    """Return the options that all runs of a command have in common.

    Args:
        options: all of the benchmark's.
        apart: those that list what its runs differ in, or say where they are kept.
    """
    return {key: value for key, value in options.items() if key not in apart}


def read_finished(file: Path, shared: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the runs in ``file`` that were made with these options; there may be no file."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [run for run in map(json.loads, lines) if run.get("options") == shared]


def add_finished(file: Path, run: Mapping[str, Any], shared: Mapping[str, str]) -> dict[str, Any]:
    """Keep one more run in ``file``, and return it with its options."""
    line = {**run, "options": dict(shared)}
    with file.open("a", encoding="utf-8") as opened:
        opened.write(json.dumps(line) + "\n")
    return line

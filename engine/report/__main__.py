"""``python -m engine.report``: analyses of one or several recorded runs of the same problem.

    python -m engine.report runs/A runs/B analysis=progress
    python -m engine.report runs/A analysis=replay top=3 json=replay.json

analysis=progress   best score so far against candidates, tokens, seconds and money
         replay     the best programs and how they came to be; what the first m children bring
         ranks      ranks of the parents chosen, and what became of them; places within a call
         distance   how far children are from their parents, against K and temperature
         coverage   filled cells of a MAP-Elites archive against candidates
         operators  improvement rate of each operator
         parents    improvement rate of each way to choose parents
json=FILE           write all numbers to a file
top=N               programs that the replay shows (5)

Runs may go on meanwhile, or have been killed. Exit codes: 0, or 2 for bad input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.core import UserError
from engine.report.analysis import ANALYSES, Findings, read_runs
from engine.report.files import write_whole

_TOP = 5
_OPTIONS = ("analysis", "json", "top")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Request:
    """What the command line asks for."""

    folders: tuple[Path, ...]
    analysis: str
    json: Path | None
    top: int


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    if {"--help", "-h"} & set(arguments):
        sys.stdout.write(f"{__doc__}")
        return 0
    try:
        request = _parse(arguments)
        runs = read_runs(request.folders)
        findings = ANALYSES[request.analysis](runs, request.top)
        if request.json is not None:
            names = [run.name for run in runs]
            _write(request.json, analysis=request.analysis, runs=names, findings=findings)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write("\n".join(table.text() for table in findings.tables))
    return 0


def _parse(arguments: Sequence[str]) -> _Request:
    """Read the arguments; a folder's name may hold an equals sign.

    Raises:
        UserError: an option is missing, given twice or has no such value.
    """
    folders, options = [], {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or key not in _OPTIONS:
            folders.append(Path(argument))
        elif key in options:
            raise UserError(f"{key}= is given twice")
        else:
            options[key] = value
    known = ", ".join(ANALYSES)
    analysis, top = options.get("analysis"), options.get("top", str(_TOP))
    if analysis is None:
        raise UserError(f"give analysis=NAME; valid: {known}")
    if analysis not in ANALYSES:
        raise UserError(f"unknown analysis {analysis!r}; valid: {known}")
    if not (top.isascii() and top.isdecimal() and len(top) < 10 and int(top) > 0):
        raise UserError(f"top is {top!r}; it must be a whole number above 0")
    if "json" in options and not Path(options["json"]).name:
        raise UserError(f"json is {options['json']!r}; it must be a file")
    return _Request(
        folders=tuple(folders),
        analysis=analysis,
        json=Path(options["json"]) if "json" in options else None,
        top=int(top),
    )


def _write(path: Path, *, analysis: str, runs: Sequence[str], findings: Findings) -> None:
    """Write everything that was found."""
    found = {"analysis": analysis, "runs": runs, "figures": findings.figures}
    write_whole(path, json.dumps(found, indent=2, allow_nan=False) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

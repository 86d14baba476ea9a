"""``python -m engine.pool export RUN... to=FOLDER top=N``: write runs' best programs as a pool.

RUN is the folder of a run that no process works on; several must be of one problem. ``top`` is 10
unless it is given. Prints each program's score, file and origin, the best first. Exit codes: 0
done, 2 the input is wrong (one line on standard error).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from engine.core import UserError
from engine.pool.export import export

_TOP = 10


def main(arguments: Sequence[str]) -> int:
    """Do as ``arguments`` say and return the exit code."""
    if {"--help", "-h"} & set(arguments):
        sys.stdout.write(__doc__ or "")
        return 0
    try:
        runs, to, top = _read(arguments)
        written = export(runs, to=to, top=top)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    for each in written:
        sys.stdout.write(f"{each.score!r}  {to / each.file}  {each.run}/{each.candidate}\n")
    return 0


def _read(arguments: Sequence[str]) -> tuple[list[Path], Path, int]:
    if not arguments or arguments[0] != "export":
        raise UserError("expected: export RUN... to=FOLDER top=N")
    given: dict[str, str] = {}
    runs: list[Path] = []
    for argument in arguments[1:]:
        key, equals, value = argument.partition("=")
        if not equals or key not in ("to", "top"):
            runs.append(Path(argument))
        elif key in given:
            raise UserError(f"{key}= is given twice")
        else:
            given[key] = value
    if not runs:
        raise UserError("no run is given; give the folder of at least one")
    if not given.get("to"):
        raise UserError("to= is missing; give the folder to be made, to=FOLDER")
    top = given.get("top", str(_TOP))
    if not (top.isascii() and top.isdigit() and len(top) < 9 and int(top) >= 1):
        raise UserError(f"top is {top[:20]!r}; it must be a whole number from 1 to 99999999")
    return runs, Path(given["to"]), int(top)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

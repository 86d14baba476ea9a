"""``python -m engine.pool export RUN... to=FOLDER top=N each=N``: write runs' best as a pool.

RUN is the folder of a run that no process works on; several must be of one problem. The pool has
the ``top`` best programs of all runs, 10 unless it is given, of them ``each`` of one run at most,
without a limit unless it is given. Prints each program's score, file and origin, the best first.
Exit codes: 0 done, 2 the input is wrong (one line on standard error).
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
        runs, to, top, each = _read(arguments)
        written = export(runs, to=to, top=top, each=each)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    for entry in written:
        sys.stdout.write(f"{entry.score!r}  {to / entry.file}  {entry.run}/{entry.candidate}\n")
    return 0


def _read(arguments: Sequence[str]) -> tuple[list[Path], Path, int, int | None]:
    if not arguments or arguments[0] != "export":
        raise UserError("expected: export RUN... to=FOLDER top=N each=N")
    given: dict[str, str] = {}
    runs: list[Path] = []
    for argument in arguments[1:]:
        key, equals, value = argument.partition("=")
        if not equals or key not in ("to", "top", "each"):
            runs.append(Path(argument))
        elif key in given:
            raise UserError(f"{key}= is given twice")
        else:
            given[key] = value
    if not runs:
        raise UserError("no run is given; give the folder of at least one")
    if not given.get("to"):
        raise UserError("to= is missing; give the folder to be made, to=FOLDER")
    each = _count("each", given["each"]) if "each" in given else None
    return runs, Path(given["to"]), _count("top", given.get("top", str(_TOP))), each


def _count(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text) >= 1):
        raise UserError(f"{key} is {text[:20]!r}; it must be a whole number from 1 to 99999999")
    return int(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``python -m engine.pool export RUN... to=FOLDER top=N each=N``: write runs' best as a pool.

    python -m engine.pool export runs/A runs/B to=pool top=20 each=5 distinct=true

RUN is the folder of a run that no process works on; several must be of one problem. The pool has
the ``top`` best programs of all runs, 10 unless it is given, of them ``each`` of one run at most,
without a limit unless it is given; with ``distinct=true`` no two have the same score. Prints each
program's score, file and origin, the best first. Exit codes: 0 done, 2 the input is wrong (one line
on standard error).
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from engine.arguments import Arguments, execute
from engine.core import UserError
from engine.pool.runs import export

_TOP = 10


def main(arguments: Sequence[str]) -> int:
    """Do as ``arguments`` say and return the exit code."""
    return execute(_export, arguments, keys=("to", "top", "each", "distinct"), usage=__doc__ or "")


def _export(arguments: Arguments) -> int:
    if arguments.rest[:1] != ["export"]:
        raise UserError("expected: export RUN... to=FOLDER top=N each=N distinct=BOOL")
    runs = [Path(each) for each in arguments.rest[1:]]
    if not runs:
        raise UserError("no run is given; give the folder of at least one")
    if not arguments.options.get("to"):
        raise UserError("to= is missing; give the folder to be made, to=FOLDER")
    to = Path(arguments.options["to"])
    top = arguments.number("top", _TOP)
    each, distinct = arguments.number("each", top), arguments.flag("distinct")
    written = export(runs, to=to, top=top, each=each, distinct=distinct)
    for entry in written:
        sys.stdout.write(f"{entry.score!r}  {to / entry.file}  {entry.run}/{entry.candidate}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

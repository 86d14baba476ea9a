"""``python -m engine.new NAME``: make the folder of a new problem, which runs at once.

    python -m engine.new NAME [in=FOLDER]
    python -m engine.run problem.path=NAME model=mutation budget.candidates=50
    python -m engine.check problem.path=NAME

The folder is a small problem, bin packing, with comments that say what to change. It lies in the
folder where the command is typed, or in ``in=FOLDER``. Exit codes: 0 it is made, 2 the input is
wrong (one line on standard error).
"""

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.arguments import Arguments, execute
from engine.core import UserError
from engine.paths import expanded
from engine.store import whole_folder

TEMPLATE = Path(__file__).parent / "template"
"""The folder that a new problem is a copy of."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_SKIPPED = "__pycache__"


def main(arguments: Sequence[str]) -> int:
    """Make what ``arguments`` name and return the exit code."""
    return execute(_make, arguments, keys=("in",), usage=__doc__ or "")


def new_problem(name: str, *, parent: Path) -> Path:
    """Make a problem in the folder ``name`` of ``parent``, whole or not at all; return the folder.

    Raises:
        UserError: the name is none for a problem, something has it already, or ``parent`` can't be
            written.
    """
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{name[:80]!r} is no name for a problem; take letters, digits, _ and -, a letter "
            "first, at most 64"
        )
    parent = expanded(parent, what="folder")
    if not parent.is_dir():
        raise UserError(f"folder {parent} does not exist; make it, or give another in=FOLDER")
    folder = parent / name
    if folder.exists() or folder.is_symlink():
        raise UserError(f"{folder} exists already; give another name, or remove it")
    with whole_folder(folder, advice="give in=FOLDER") as partial:
        for source in sorted(TEMPLATE.rglob("*")):
            target = partial / source.relative_to(TEMPLATE)
            if source.is_dir() and source.name != _SKIPPED:
                target.mkdir()
            elif source.is_file() and source.parent.name != _SKIPPED:
                target.write_bytes(source.read_bytes())  # not its mode: it may be read-only
    return folder


def _make(arguments: Arguments) -> int:
    if len(arguments.rest) != 1:
        raise UserError("give one name: python -m engine.new NAME [in=FOLDER]")
    (name,) = arguments.rest
    folder = new_problem(name, parent=Path(arguments.options.get("in", ".")))
    files = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir())
    path = shlex.quote(str(folder))
    print(f"{folder}: {', '.join(files)}")
    print(f"run it:   python -m engine.run problem.path={path} model=mutation budget.candidates=50")
    print(f"check it: python -m engine.check problem.path={path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The command that judges a problem's programs: what ``problem.yaml`` gives becomes what runs.

And where the folder of a problem may lie that has a judge of its own, be it a command or another
system's evaluator.
"""

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from engine.core import Judge, UserError
from engine.core.bundle import MAIN, is_bundle
from engine.problem.initial import INITIAL_FILE

PYTHON = "python"
"""As a command's first word, the interpreter that runs this, with its libraries."""
_COVERED = Path("/dev/shm")
"""A box has a folder of its own in this place (``native/scratch.cpp``)."""


def check_is_in_reach(folder: Path) -> None:
    """Raise a `UserError` if a problem's judge, which runs in a box, could not read its folder."""
    if folder.resolve().is_relative_to(_COVERED.resolve()):
        raise UserError(
            f"{folder}: an evaluator in a process of its own can't read what lies in {_COVERED}, "
            "where it has memory of its own; keep the problem in another folder"
        )


def checked_command(folder: Path, judge: Judge, program: str) -> Judge:
    """Return a judge whose command can be run.

    Args:
        folder: the problem's.
        judge: as ``problem.yaml`` has it.
        program: the initial one.

    Raises:
        UserError: there is no such executable, or a box can't read the folder.
    """
    check_is_in_reach(folder)
    word, *rest = judge.command
    found = sys.executable if word == PYTHON else _executable(folder, word)
    single = (folder / INITIAL_FILE).exists() or is_bundle(program)
    return replace(judge, command=(found, *rest), file=INITIAL_FILE if single else MAIN)


def _executable(folder: Path, word: str) -> str:
    """Return the path of a program: of the folder, where the word has a slash, or of the PATH."""
    where = f"{folder / 'problem.yaml'}: command {word}"
    if "/" not in word:
        found = shutil.which(word)
        if found is None:
            raise UserError(
                f"{where} is not on the PATH; install it, or give ./{word} of the folder"
            )
        return found
    path = folder / word
    if not path.is_file():
        raise UserError(f"{where} does not exist; give an executable of the folder, or {PYTHON}")
    if not os.access(path, os.X_OK):
        raise UserError(
            f"{where} can't be executed; run chmod +x {path}, or give {PYTHON} before it"
        )
    return str(path)

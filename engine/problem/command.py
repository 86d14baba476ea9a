"""The command that judges a problem's programs: what ``problem.yaml`` gives becomes what runs."""

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


def checked_command(folder: Path, judge: Judge, program: str) -> Judge:
    """Return a judge whose command can be run.

    Args:
        folder: the problem's.
        judge: as ``problem.yaml`` has it.
        program: the initial one.

    Raises:
        UserError: there is no such executable.
    """
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

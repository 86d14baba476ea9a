"""Text of files, and errors in one line."""

from __future__ import annotations

from pathlib import Path

from engine.core import UserError


def read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read as UTF-8 text: {error}") from error


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())

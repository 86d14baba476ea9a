"""Files that a report writes: whole or not at all."""

import contextlib
from pathlib import Path

from engine.core import UserError

_MOST_OF_NAME = 32  # characters of a name; with more, a temporary one could be too long


def write_whole(path: Path, text: str) -> None:
    """Write a text file in one step: at ``path`` is either the old file or the whole new one.

    Raises:
        UserError: it can't be written; the message names it.
    """
    partial = path.with_name(f".{path.name[:_MOST_OF_NAME]}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):  # nor could it be made then
            partial.unlink(missing_ok=True)

"""Files that a report writes: whole or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from engine.core import UserError

_MOST_OF_NAME = 32  # characters of a name; with more, a temporary one could be too long


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Yield a text file that stands at ``path``, in one step, once the block has ended well.

    If it ends otherwise, what stood there before still does, and nothing else is left.

    Raises:
        UserError: it can't be written; the message names it.
    """
    partial = path.with_name(f".{path.name[:_MOST_OF_NAME]}.partial")
    try:
        with partial.open("w", encoding="utf-8") as output:
            yield output
        partial.replace(path)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):  # nor could it be made then
            partial.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a text file in one step.

    Raises:
        UserError: it can't be written; the message names it.
    """
    with whole_file(path) as output:
        output.write(text)

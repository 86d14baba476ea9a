"""Search/replace blocks: how a model says what to change in a program.

Covers: finding the blocks in an answer, whatever stands around them, applying them, and whether an
answer that is still being written can come to anything. Does not cover near misses: a search text
that is not in the program, letter by letter, does not apply.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.syntax import source_lines

_SEARCH, _DIVIDER, _REPLACE = (
    re.compile(mark) for mark in (r"<{5,} SEARCH\s*$", r"={5,}\s*$", r">{5,} REPLACE\b")
)


def apply_blocks(program: str, text: str) -> str | None:
    """Apply the search/replace blocks in ``text`` in order.

    A search text has to stand in the program as whole lines; trailing spaces do not count. Where it
    stands more than once, the first place is changed. A block that does not end is left out.

    Returns:
        The changed program; None if there is no block, or one does not apply.
    """
    reading = _read(plain_lines(program), plain_lines(text))
    if reading.failed or not reading.applied:
        return None
    return "\n".join(reading.lines) + "\n"


def is_lost(program: str, text: str) -> bool:
    """Return whether `apply_blocks` returns None for every text that begins with ``text``.

    That is so once a complete search text is not in the program and no block before it was applied.
    If one was, an answer that ends inside the open block still makes a program of those before.
    """
    reading = _read(plain_lines(program), _whole_lines(text))
    return reading.failed or (reading.stuck and not reading.applied)


def is_spent(program: str, text: str) -> bool:
    """Return whether ``text`` makes a program, and no longer answer that begins with it another.

    That is so once a block was applied and the next one's search text is not in the program: any
    end of that block makes the whole answer fail.
    """
    reading = _read(plain_lines(program), _whole_lines(text))
    if not reading.stuck or reading.failed:
        return False
    return apply_blocks(program, text) is not None  # a last line may look like a mark by now


def plain_lines(text: str) -> list[str]:
    """Return the lines of ``text`` as Python sees them, without their ends."""
    return [line.rstrip("\r\n") for line in source_lines(text)]


def _whole_lines(text: str) -> list[str]:
    """Return the lines of ``text`` without one that may go on."""
    lines = plain_lines(text)
    return lines if text.endswith(("\n", "\r")) else lines[:-1]


@dataclass(kw_only=True, slots=True)
class _Reading:
    """What the blocks of an answer, read up to some line, have made of a program.

    Attributes:
        lines: the program with the blocks that ended applied.
        applied: how many blocks were applied.
        failed: whether a block that ended, or was begun anew, does not apply.
        stuck: whether the open block's search text is complete and not in the program.
    """

    lines: list[str]
    applied: int = 0
    failed: bool = False
    stuck: bool = False


def _read(program: list[str], answer: Sequence[str]) -> _Reading:
    """Apply the blocks that end in ``answer``, up to the first that does not apply."""
    reading = _Reading(lines=program)
    search: list[str] | None = None
    replace: list[str] | None = None
    start: int | None = None
    for line in answer:
        if _SEARCH.match(line):
            reading.failed = reading.stuck
            search, replace = [], None
        elif search is not None and replace is None and _DIVIDER.match(line):
            replace = []
            start = _place(reading.lines, search)
            reading.stuck = start is None
        elif search is not None and replace is not None and _REPLACE.match(line):
            if start is None:
                reading.failed = True
            else:
                reading.lines[start : start + len(search)] = replace
                reading.applied += 1
            search = replace = None
        elif search is not None:
            (search if replace is None else replace).append(line)
        if reading.failed:
            break
    return reading


def _place(lines: Sequence[str], search: Sequence[str]) -> int | None:
    """Return the first line at which the search lines stand; None if they stand nowhere."""
    wanted = [line.rstrip() for line in search]
    if not any(wanted):
        return None  # nothing but blank lines says no place
    present = [line.rstrip() for line in lines]
    for start in range(len(lines) - len(wanted) + 1):
        if present[start : start + len(wanted)] == wanted:
            return start
    return None

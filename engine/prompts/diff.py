"""Search/replace blocks: how a model says what to change in a program.

Covers: finding the blocks in an answer, whatever stands around them, and applying them. Does not
cover near misses: a search text that is not in the program, letter by letter, does not apply.
"""

import re
from collections.abc import Sequence

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
    lines, applied = plain_lines(program), False
    block: list[
        list[str]
    ] = []  # the open one: its search lines, and after the divider the new ones
    for line in plain_lines(text):
        begins = _SEARCH.match(line) is not None
        ends = len(block) == 2 and _REPLACE.match(line) is not None
        if len(block) == 2 and (begins or ends):
            search, new = block
            start = _place(lines, search)
            if start is None:
                return None  # also of a block that is begun anew
            if ends:
                lines[start : start + len(search)] = new
                applied = True
        if begins or ends:
            block = [[]] if begins else []
        elif len(block) == 1 and _DIVIDER.match(line):
            block.append([])
        elif block:
            block[-1].append(line)
    return "\n".join(lines) + "\n" if applied else None


def plain_lines(text: str) -> list[str]:
    """Return the lines of ``text`` as Python sees them, without their ends."""
    return [line.rstrip("\r\n") for line in source_lines(text)]


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

"""Search/replace blocks: how a model says what to change in a program.

Covers: finding the blocks in an answer, whatever stands around them, and applying them. Does not
cover near misses: a search text that is not in the program, letter by letter, does not apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from engine import program as programs

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
    blocks = list(_blocks(text))
    if not blocks:
        return None
    lines = plain_lines(program)
    for search, replace in blocks:
        changed = _replace_lines(lines, search, replace)
        if changed is None:
            return None
        lines = changed
    return "\n".join(lines) + "\n"


def plain_lines(text: str) -> list[str]:
    """Return the lines of ``text`` as Python sees them, without their ends."""
    return [line.rstrip("\r\n") for line in programs.source_lines(text)]


def _blocks(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the (search lines, new lines) of each block."""
    search: list[str] | None = None
    replace: list[str] | None = None
    for line in plain_lines(text):
        if _SEARCH.match(line):
            search, replace = [], None
        elif search is not None and replace is None and _DIVIDER.match(line):
            replace = []
        elif search is not None and replace is not None and _REPLACE.match(line):
            yield search, replace
            search = replace = None
        elif search is not None:
            (search if replace is None else replace).append(line)


def _replace_lines(
    lines: Sequence[str], search: Sequence[str], replace: Sequence[str]
) -> list[str] | None:
    wanted = [line.rstrip() for line in search]
    if not any(wanted):
        return None  # nothing but blank lines says no place
    present = [line.rstrip() for line in lines]
    for start in range(len(lines) - len(wanted) + 1):
        if present[start : start + len(wanted)] == wanted:
            return [*lines[:start], *replace, *lines[start + len(wanted) :]]
    return None

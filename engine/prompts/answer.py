"""Programs between fences, quoted in a prompt and found in an answer; and search/replace blocks.

What a quoted program or output holds can't end its own block.

Covers: answers that hold a whole program, finished or still being written. The answer's *program
block* is its first fenced block that defines the entry point and holds a line that the parent does
not have. A block before it, such as a quoted piece of the parent, does not count. Nothing behind
the program block changes it, so the answer is complete once that block is closed. Where there is no
such block, the last fenced block that is a program counts, or else the whole answer.

A model's thoughts are no part of its answer: if the prompt ends with ``<think>``, or the answer
begins with it, everything up to ``</think>`` is left out.

Search/replace blocks say what to change in a program. They are found whatever stands around them,
and applied. Does not cover near misses: a search text that is not in the program, letter by letter,
does not apply.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.syntax import source_lines

_THINK, _THOUGHT = "<think>", "</think>"
_BACKTICKS = re.compile(r"`{3,}")
_OPENING = re.compile(r"(?<!`)(`{3,})[^\n`]*\n")

_SEARCH, _DIVIDER, _REPLACE = (
    re.compile(mark) for mark in (r"<{5,} SEARCH\s*$", r"={5,}\s*$", r">{5,} REPLACE\b")
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FencedBlock:
    """The text between two fences, or behind an opening one that is not ``closed``."""

    text: str
    closed: bool


def fenced(language: str, text: str) -> str:
    """Return ``text``, letter by letter, between fences longer than any that it holds."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def fenced_blocks(text: str) -> Iterator[FencedBlock]:
    r"""Yield the fenced blocks of a text whose lines end with ``\n``, in order.

    More text behind it adds blocks and lengthens one that is not closed; it changes nothing else.
    """
    end = 0
    while opening := _OPENING.search(text, end):
        start = opening.end()
        # As many backticks as began it: a program with fences is shown between longer ones.
        closing = re.compile(rf"^[ \t]*{opening[1]}", re.MULTILINE).search(text, start)
        yield FencedBlock(
            text=text[start : closing.start() if closing else None], closed=closing is not None
        )
        end = closing.end() if closing else len(text)


class Answer:
    """What an answer, or the start of one, holds."""

    def __init__(self, text: str, *, asked: str, parent: str, entry_point: str) -> None:
        """Look for the program block.

        Args:
            text: the answer as far as it is written.
            asked: how the prompt that it answers ends.
            parent: the program that it was asked to change.
            entry_point: the function that a program has to define.
        """
        self._text = text.replace("\r\n", "\n").replace("\r", "\n")
        self._block = _program_block(_spoken(self._text, asked), parent, entry_point)

    def programs(self) -> Iterator[str]:
        """Yield the texts that may be the program; the child's is the first that parses."""
        if self._block is not None:
            yield _stripped(self._block.text)
            return
        blocks = [block.text for block in fenced_blocks(self._text)]
        yield from map(_stripped, [*reversed(blocks), self._text])

    @property
    def is_complete(self) -> bool:
        """Whether the program block is closed, so that nothing that follows counts."""
        return self._block is not None and self._block.closed


def _spoken(text: str, asked: str) -> str:
    """Return the part of an answer that follows what the model thought."""
    if asked.rstrip().endswith(_THINK) or text.lstrip().startswith(_THINK):
        return text.partition(_THOUGHT)[2]
    return text


def _program_block(text: str, parent: str, entry_point: str) -> FencedBlock | None:
    defines = re.compile(rf"\bdef[ \t]+{re.escape(entry_point)}\b")
    known: set[str] | None = None
    for block in fenced_blocks(text):
        written = _written(block)
        if defines.search(written):
            if known is None:
                known = {line.rstrip() for line in plain_lines(parent)}
            if any(_is_said(line) and line.rstrip() not in known for line in written.split("\n")):
                return block
    return None


def _written(block: FencedBlock) -> str:
    """Return a block's lines without one that may go on."""
    return block.text if block.closed else block.text[: block.text.rfind("\n") + 1]


def _is_said(line: str) -> bool:
    """Whether a line is code: neither blank, nor a comment, nor dots that stand for code."""
    line = line.strip()
    return bool(line) and not line.startswith("#") and line != "..."


def _stripped(text: str) -> str:
    return text.strip() + "\n"


def apply_blocks(program: str, text: str) -> str | None:
    """Apply the search/replace blocks in ``text`` in order.

    A search text has to stand in the program as whole lines; trailing spaces do not count. Where it
    stands more than once, the first place is changed. A block that does not end is left out.

    Returns:
        The changed program; None if there is no block, or one does not apply.
    """
    lines, applied = plain_lines(program), False
    # The open one: its search lines, and after the divider the new ones.
    block: list[list[str]] = []
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

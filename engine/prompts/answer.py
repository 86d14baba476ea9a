"""Programs between fences, quoted in a prompt and found in an answer; and search/replace blocks.

What a quoted program or output holds can't end its own block.

Covers: answers that hold a whole program, finished or still being written. The answer's *program
block* is its first fenced block that defines the entry point and holds a line that the parent does
not have. A block before it, such as a quoted piece of the parent, does not count. Nothing behind
the program block changes it, so the answer is complete once that block is closed. Where there is no
such block, the last fenced block that is a program counts, or else the whole answer. Of a parent
with fixed text or named files, a block counts that holds an evolve mark or a ``#:file`` line; of
one with several open files, all such blocks count together (``engine.syntax.blocks``).

A model's thoughts are no part of its answer: if the prompt ends with ``<think>``, or the answer
begins with it, everything up to ``</think>`` is left out.

Search/replace blocks say what to change in a program. They are found whatever stands around them,
and applied. Does not cover near misses: a search text that is not in the program, letter by letter,
does not apply.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from engine.core.bundle import sections_of
from engine.syntax import source_lines
from engine.syntax.blocks import PLAIN, File, Outline, merged, outline

_THINK, _THOUGHT = "<think>", "</think>"
_BACKTICKS = re.compile(r"`{3,}")
_OPENING = re.compile(r"(?<!`)(`{3,})[^\n`]*\n")
_SPACES = 3  # that a closing fence may have before it, by CommonMark

_PART = re.compile(r"EVOLVE-BLOCK-START|^#:file ", re.MULTILINE)
_ANYTHING = re.compile("")
_MOST_DIVIDERS = 8
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
    fence = fence_for(text)
    return f"{fence}{language}\n{text}\n{fence}"


def fence_for(text: str) -> str:
    """Return a fence longer than any that ``text`` holds."""
    return "`" * (max((len(run) for run in _BACKTICKS.findall(text)), default=2) + 1)


def fenced_blocks(text: str) -> Iterator[FencedBlock]:
    r"""Yield the fenced blocks of a text whose lines end with ``\n``, in order.

    As CommonMark has it, what is indented further than a closing fence may be is a line of the
    block, such as an example in a docstring. A block in a list is as far to the left as its opening
    fence. Whatever stands behind a closing fence, it closes: an answer that is still being written
    ends there. More text behind it all adds blocks and lengthens one that is not closed; it changes
    nothing else.
    """
    end = 0
    while opening := _OPENING.search(text, end):
        start = opening.end()
        before = text[text.rfind("\n", 0, opening.start()) + 1 : opening.start()]
        indentation = 0 if before.strip(" ") else len(before)
        # As many backticks as began it: a program with fences is shown between longer ones.
        fence = rf"^ {{0,{max(indentation, _SPACES)}}}{opening[1]}"
        closing = re.compile(fence, re.MULTILINE).search(text, start)
        lines = text[start : closing.start() if closing else None]
        yield FencedBlock(
            text=re.sub(rf"^ {{0,{indentation}}}", "", lines, flags=re.MULTILINE),
            closed=closing is not None,
        )
        end = closing.end() if closing else len(text)


def spoken(text: str, *, asked: str) -> str:
    """Return the part of an answer that follows what the model thought.

    Args:
        text: the answer as far as it is written.
        asked: how the prompt that it answers ends.
    """
    if asked.rstrip().endswith(_THINK) or text.lstrip().startswith(_THINK):
        return text.partition(_THOUGHT)[2]
    return text


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
        self._text = spoken(text.replace("\r\n", "\n").replace("\r", "\n"), asked=asked)
        self._parent = parent
        self._outline = outline(parent)
        if self._outline.is_plain:
            begins = re.compile(rf"\bdef[ \t]+{re.escape(entry_point)}\b")
        else:
            begins = _ANYTHING if self._is_one_whole_file else _PART
        self._parts = [each for each in fenced_blocks(self._text) if begins.search(_written(each))]
        self._block = None if self._has_many else _changed_block(self._parts, parent)

    def programs(self) -> Iterator[str]:
        """Yield the texts that may be the program; the child's is the first that parses."""
        for text in self._texts():
            program = merged(self._parent, stripped(text))
            if program is not None:
                yield program

    @property
    def is_complete(self) -> bool:
        """Whether the program block is closed, so that nothing that follows counts."""
        return self._block is not None and self._block.closed

    @property
    def _has_many(self) -> bool:
        return len(self._outline.open_files) > 1

    @property
    def _is_one_whole_file(self) -> bool:
        """Whether the parent is a named file that may change everywhere, and the only such one."""
        files = self._outline.open_files
        return len(files) == 1 and not files[0].has_blocks

    def _texts(self) -> Iterator[str]:
        if self._block is not None:
            yield self._block.text
            return
        if self._has_many:
            yield "\n".join(block.text.strip("\n") for block in self._parts)
        blocks = [block.text for block in fenced_blocks(self._text)]
        yield from reversed(blocks)
        if self._outline.is_plain or _PART.search(self._text):
            yield self._text


def _changed_block(blocks: Iterable[FencedBlock], parent: str) -> FencedBlock | None:
    """Return the first block with a line of code that the parent does not have."""
    known: set[str] | None = None
    for block in blocks:
        if known is None:
            known = {line.rstrip() for line in plain_lines(parent)}
        lines = _written(block).split("\n")
        if any(_is_said(line) and line.rstrip() not in known for line in lines):
            return block
    return None


def _written(block: FencedBlock) -> str:
    """Return a block's lines without one that may go on."""
    return block.text if block.closed else block.text[: block.text.rfind("\n") + 1]


def _is_said(line: str) -> bool:
    """Whether a line is code: neither blank, nor a comment, nor dots that stand for code."""
    line = line.strip()
    return bool(line) and not line.startswith("#") and line != "..."


def stripped(text: str) -> str:
    """Return a text without the empty lines round it."""
    return text.strip("\n").rstrip() + "\n" if _PART.search(text) else text.strip() + "\n"


def apply_blocks(program: str, text: str) -> str | None:
    """Apply the search/replace blocks in ``text`` in order.

    A search text has to stand in the program as whole lines of what may change; trailing spaces do
    not count. Where it stands more than once, the first place is changed. Of several lines that
    could divide a block, as a program may hold such a line, the last one counts before which all is
    text of the program. A block that does not end is left out. In a program of several files, a
    block is for the one that the last ``#:file`` line before it names, and without one for the
    first that has its search text.

    Returns:
        The changed program; None if there is no block, or one does not apply.
    """
    whole = outline(program)
    pages = {file.name: _lines_of(file) for file in whole.open_files}
    named, changed = "", set[str]()
    block: list[str] | None = None  # the lines of the open one
    for line in plain_lines(text):
        begins, may_end = _SEARCH.match(line) is not None, _REPLACE.match(line) is not None
        cuts = _dividers(block) if begins or may_end else []
        if block is not None and cuts:
            found = _divided(pages, named, block, cuts)
            if found is None:
                return None  # also of a block that is begun anew
            if may_end:
                cut, name, start = found
                pages[name][start : start + cut] = [(each, True) for each in block[cut + 1 :]]
                changed.add(name)
        if begins or (may_end and cuts):
            block = [] if begins else None
        elif block is not None:
            block.append(line)
        elif whole.is_bundle and (sections := sections_of(f"{line}\n")[1]):
            named = sections[0][0]
    return _with_pages(whole, {name: pages[name] for name in changed}) if changed else None


_Page = list[tuple[str, bool]]
"""The lines of a file, and whether each may be searched for: all but those of its fixed text."""


def _lines_of(file: File) -> _Page:
    page: _Page = []
    for number, piece in enumerate(file.pieces):
        lines = plain_lines(piece)
        flags = [number % 2 == 1] * len(lines)
        if number % 2 == 0 and lines:  # a mark may be searched for, and is not changed
            flags[0] |= number > 0
            flags[-1] |= number < len(file.pieces) - 1
        page += zip(lines, flags, strict=True)
    return page


def _with_pages(whole: Outline, pages: Mapping[str, _Page]) -> str | None:
    texts = {name: "".join(f"{line}\n" for line, _ in page) for name, page in pages.items()}
    if whole.is_plain:
        return texts[PLAIN] or "\n"
    try:
        return whole.with_texts(texts).text
    except ValueError:  # the marks do not fit any more
        return None


def plain_lines(text: str) -> list[str]:
    """Return the lines of ``text`` as Python sees them, without their ends."""
    return [line.rstrip("\r\n") for line in source_lines(text)]


def _dividers(block: Sequence[str] | None) -> list[int]:
    """Return which lines of a block may divide it; the first few, since each is tried."""
    found = (index for index, line in enumerate(block or ()) if _DIVIDER.match(line))
    return [*islice(found, _MOST_DIVIDERS)]


def _divided(
    pages: Mapping[str, _Page], named: str, block: Sequence[str], cuts: Sequence[int]
) -> tuple[int, str, int] | None:
    """Return the last of the cuts whose search lines stand somewhere, the file and the line."""
    for cut in reversed(cuts):
        place = _place(pages, named, block[:cut])
        if place is not None:
            return cut, *place
    return None


def _place(pages: Mapping[str, _Page], named: str, search: Sequence[str]) -> tuple[str, int] | None:
    """Return the file and the first line at which the search lines stand; None if nowhere."""
    wanted = [(line.rstrip(), True) for line in search]
    if not any(line for line, _ in wanted):
        return None  # nothing but blank lines says no place
    for name, page in pages.items():
        if named in ("", name):
            present = [(line.rstrip(), may) for line, may in page]
            for start in range(len(page) - len(wanted) + 1):
                if present[start : start + len(wanted)] == wanted:
                    return name, start
    return None

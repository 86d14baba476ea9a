"""What a completion makes of a parent with a gap."""

import re
from collections.abc import Iterator, Sequence

from engine.core import Gap, Parsed
from engine.syntax import read

_WORDS = re.compile(r"\w\w")  # the end of one and the start of the next
_MOST_CHARACTERS = 400  # of an expression: each of its tokens may cost a parse


def filled(parent: str, gap: Gap, text: str, *, cut_off: bool, most_lines: int) -> Sequence[Parsed]:
    """Return the parent with the longest start of a completion in its gap that parses there.

    Args:
        parent: the parent's text.
        gap: what is left out of it.
        text: the completion.
        cut_off: whether the completion was ended by a limit, so that its last line may be half one.
        most_lines: of the completion that are used, where the gap is one of lines.

    Returns:
        One program, or None in its place.
    """
    before, after = parent[: gap.start] + gap.before, gap.after + parent[gap.end :]
    text = text.lstrip(" ")  # a word's token holds the space before it
    pieces = _statements(text, cut_off, most_lines) if gap.whole_lines else _expressions(text)
    for piece in pieces:
        program = read(_joined(_joined(before, piece), after))
        if program is not None:
            return (Parsed(program=program),)
    return (Parsed(program=None),)


def _joined(left: str, right: str) -> str:
    """Return two texts with a space between two words, as in ``return`` and ``x``."""
    return f"{left} {right}" if _WORDS.fullmatch(left[-1:] + right[:1]) else left + right


def _statements(text: str, cut_off: bool, most: int) -> Iterator[str]:
    """Yield the completion's first lines, the most first; a last line cut off does not count."""
    lines = text.split("\n")
    if cut_off and len(lines) > 1:
        lines = lines[:-1]
    for count in range(min(most, len(lines)), 0, -1):
        piece = "\n".join(lines[:count]).rstrip()
        if piece.strip():
            yield piece


def _expressions(text: str) -> Iterator[str]:
    """Yield the starts of the completion's first line, the longest first, ending at a token."""
    line = text.split("\n", 1)[0][:_MOST_CHARACTERS]
    marks = re.finditer(r"\W", line)
    ends = {len(line), *(end for mark in marks for end in mark.span())}
    seen = ""
    for end in sorted(ends, reverse=True):
        piece = line[:end].rstrip()
        if piece and piece != seen:
            yield piece
        seen = piece

"""Fences round quoted text: what a program or an output holds can't end its own block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BACKTICKS = re.compile(r"`{3,}")
_OPENING = re.compile(r"(?<!`)(`{3,})[^\n`]*\n")


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

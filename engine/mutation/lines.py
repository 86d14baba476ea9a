"""Mutations of a text whose language has no syntax tree here: of its numbers and its lines.

A line that opens a bracket and does not close it stays where it is, or changes places with one that
opens as many: so do the heads of two loops. Which lines are statements is not known; a compiler
refuses what is none any more.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine.mutation.change import one_of
from engine.mutation.number import moved
from engine.syntax.plain import TextToken, decimal_of, tokens_of


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """A line that holds code.

    Attributes:
        number: which one it is, from 0.
        opens: brackets that it opens and does not close; None where it closes others.
    """

    number: int
    opens: int | None


def mutated_lines(
    name: str, text: str, span: tuple[int, int], rng: np.random.Generator
) -> str | None:
    """Return a file's text with one mutation; None where chance found none.

    Args:
        name: the file's.
        text: the whole of it.
        span: the first of the characters that may change, and the first one behind them.
        rng: decides.
    """
    start, end = span
    tokens = [each for each in tokens_of(name, text) if start <= each.start < end]
    kind = _KINDS[int(rng.choice(len(_KINDS), p=_SHARES))]
    piece = kind(text[start:end], tokens, start, rng)
    return None if piece is None else text[:start] + piece + text[end:]


def _number(
    piece: str, tokens: Sequence[TextToken], start: int, rng: np.random.Generator
) -> str | None:
    """Scale or shift a number, as a Python program's; its sign stands before it and stays."""
    numbers = [(each, number) for each in tokens if (number := decimal_of(each)) is not None]
    if not numbers:
        return None
    token, number = one_of(numbers, rng)
    at = token.start - start
    after = f"{abs(moved(number.value, rng))!r}{token.text[len(number.digits) :]}"
    return piece[:at] + after + piece[at + len(token.text) :]


def _removal(
    piece: str, tokens: Sequence[TextToken], start: int, rng: np.random.Generator
) -> str | None:
    """Remove a line."""
    whole = [line.number for line in _lines(piece, tokens, start) if line.opens == 0]
    if not whole:
        return None
    lines = piece.splitlines(keepends=True)
    del lines[one_of(whole, rng)]
    return "".join(lines)


def _repetition(
    piece: str, tokens: Sequence[TextToken], start: int, rng: np.random.Generator
) -> str | None:
    """Insert a copy of a line somewhere behind it."""
    whole = [line.number for line in _lines(piece, tokens, start) if line.opens == 0]
    if not whole:
        return None
    lines = piece.splitlines(keepends=True)
    number = one_of(whole, rng)
    to = one_of([each for each in whole if each >= number], rng)
    lines.insert(to + 1, _indented(lines[number], like=lines[to]))
    return "".join(lines)


def _exchange(
    piece: str, tokens: Sequence[TextToken], start: int, rng: np.random.Generator
) -> str | None:
    """Let two neighbours change places."""
    code = _lines(piece, tokens, start)
    pairs = [
        (first.number, second.number)
        for first, second in pairwise(code)
        if first.opens is not None and first.opens == second.opens
    ]
    if not pairs:
        return None
    lines = piece.splitlines(keepends=True)
    first, second = one_of(pairs, rng)
    lines[first], lines[second] = (
        _indented(lines[second], like=lines[first]),
        _indented(lines[first], like=lines[second]),
    )
    return "".join(lines)


def _lines(piece: str, tokens: Sequence[TextToken], start: int) -> list[_Line]:
    """Return the lines with code, in their order."""
    words: defaultdict[int, list[str]] = defaultdict(list)
    ends = np.cumsum([len(line) for line in piece.splitlines(keepends=True)])
    for token in tokens:
        words[int(np.searchsorted(ends, token.start - start, side="right"))].append(token.text)
    return [_Line(number=number, opens=_opens(line)) for number, line in sorted(words.items())]


def _opens(words: Sequence[str]) -> int | None:
    depth = 0
    for word in words:
        if len(word) <= 2:  # a lexer may put two signs together, and a text is longer
            for sign in word:
                depth += (sign in "([{") - (sign in ")]}")
                if depth < 0:
                    return None
    return depth


def _indented(line: str, *, like: str) -> str:
    """Return a line with the indentation of another one, and an end."""
    indentation = like[: len(like) - len(like.lstrip())]
    return f"{indentation}{line.strip()}\n"


_Kind = Callable[[str, Sequence[TextToken], int, np.random.Generator], str | None]
_WEIGHTS: dict[_Kind, float] = {_number: 4.0, _removal: 0.5, _repetition: 0.5, _exchange: 2.0}
_KINDS = tuple(_WEIGHTS)
_SHARES = np.array(tuple(_WEIGHTS.values())) / sum(_WEIGHTS.values())

"""The numeric constants of a program that may be tuned: where they stand and what they are.

Positions, axes and slices are structure and no constants: a whole number behind ``axis=``, or
beside a square bracket or a colon, as the ends of a list and a dictionary's values are too. Neither
is anything outside the evolve blocks, or in a function that nothing reaches. A whole number that is
too large for a grid of floats, such as the modulus of a generator, is none either.

Does not cover which values are tried: ``tuner.py``.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.syntax import parse
from engine.syntax.blocks import PLAIN, File, outline
from engine.syntax.plain import TextToken, decimal_of, tokens_of
from engine.syntax.reach import unreached_spans

MOST_WHOLE = 10**12
"""The largest whole number. CMA-ES has them on a grid of floats that goes on to a thousand times
their size: from some 10^14 on neighbours are one float, and from 10^16 on it can't be counted."""
_AXES = frozenset({"axis", "dim", "ndim"})
_INDEX_SIGNS = frozenset({"[", "]", ":"})
_POWER = re.compile(r" *\*\*")
_ENDS_VALUE = frozenset(")]}")  # behind these a minus subtracts


@dataclass(frozen=True, kw_only=True, slots=True)
class Constant:
    """A number that a program has in the part of it that may change.

    Attributes:
        file: its file's name; empty in a program of one file.
        start: its first character in the file's text, a sign included.
        end: the first one behind it; a suffix of its type is not included.
        value: what it is; an ``int`` stays one.
    """

    file: str
    start: int
    end: int
    value: int | float


def constants_of(program: str, *, entry: str | None = None) -> tuple[Constant, ...]:
    """Return the constants of a program, in the order of its files and their texts.

    Args:
        program: its text.
        entry: the function that is called; None where that is not known.
    """
    return tuple(
        constant
        for file in outline(program).open_files
        for constant in _constants_in(file, unreached=_unreached(file, entry))
    )


def with_values(program: str, constants: Sequence[Constant], values: Sequence[int | float]) -> str:
    """Return a program whose constants have other values, everything else as it is written.

    Args:
        program: whose constants these are.
        constants: any of them, in their order.
        values: one for each.
    """
    whole = outline(program)
    texts: dict[str, list[str]] = {}
    ends: dict[str, int] = {}
    sources = {file.name: file.text for file in whole.files}
    for constant, value in zip(constants, values, strict=True):
        source, name = sources[constant.file], constant.file
        kept = source[ends.get(name, 0) : constant.start]
        is_base = _POWER.match(source, constant.end) is not None
        written = _written(value, behind=kept, is_base=is_base)
        texts.setdefault(name, []).extend((kept, written))
        ends[name] = constant.end
    changed = {
        name: "".join(pieces) + sources[name][ends[name] :] for name, pieces in texts.items()
    }
    return whole.with_texts(changed).text


def _unreached(file: File, entry: str | None) -> Sequence[tuple[int, int]]:
    tree = None if file.name != PLAIN or entry is None else parse(file.text)
    return () if tree is None else unreached_spans(file.text, tree, entry=entry or "")


def _constants_in(file: File, *, unreached: Sequence[tuple[int, int]]) -> list[Constant]:
    name = "program.py" if file.name == PLAIN else file.name
    tokens = [*tokens_of(name, file.text)]
    nothing = TextToken(text="", start=0, is_number=False)
    around = [nothing, nothing, nothing, *tokens, nothing]
    found = []
    for index, token in enumerate(tokens):
        number = decimal_of(token)
        if number is None or not _is_in(token, file.spans) or _is_in(token, unreached):
            continue
        farther, earlier, before, _, after = around[index : index + 5]
        is_cut = after.start == token.start + len(token.text) and after.text[:1].isalpha()
        has_minus = before.text == "-" and _begins_value(earlier)
        ahead = (farther, earlier) if has_minus else (earlier, before)
        is_structure = _is_structure(ahead[0].text, ahead[1].text, after.text)
        if is_cut or not _can_move(number.value):
            continue
        if isinstance(number.value, int) and is_structure:
            continue
        end = token.start + len(number.digits)
        is_negative = has_minus and not _POWER.match(file.text, end)  # -2 ** 2 is -(2 ** 2)
        found.append(
            Constant(
                file=file.name,
                start=before.start if is_negative else token.start,
                end=end,
                value=-number.value if is_negative else number.value,
            )
        )
    return found


def _is_in(token: TextToken, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= token.start < end for start, end in spans)


def _can_move(value: int | float) -> bool:
    return value <= MOST_WHOLE if isinstance(value, int) else math.isfinite(value)


def _is_structure(earlier: str, before: str, after: str) -> bool:
    beside = before in _INDEX_SIGNS or after in _INDEX_SIGNS
    return beside or (before == "=" and earlier in _AXES)


def _begins_value(token: TextToken) -> bool:
    """Whether what follows a token and a minus is negative, and not subtracted."""
    text = token.text
    if text in ("return", "in", "and", "or", "not", "else", "if", "yield", "lambda"):
        return True
    return not (token.is_number or text[-1:] in _ENDS_VALUE or text[-1:].isalnum() or "_" in text)


def _written(value: int | float, *, behind: str, is_base: bool) -> str:
    """Return a value's text.

    It is in brackets where a sign would meet another one or belong to a power, and behind a space
    where it would go on a word.
    """
    text = repr(value)
    if not text.startswith("-"):
        return f" {text}" if behind[-1:].isalnum() or behind.endswith("_") else text
    meets = behind.rstrip(" ").endswith(("-", "+", "*", "/", "%"))
    return f"({text})" if meets or is_base else text

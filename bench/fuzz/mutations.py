"""Changes of samples: bytes, texts and JSON values. All chance is in the generator given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

_NUMBERS = (0, 1, 2, 7, 8, 127, 128, 255, 256, 65535, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)
_MOST_REPEATED = 3000  # times that a part is repeated
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**53 + 1, -(2**63), 2**64, 10**400),
    *(0.0, -0.0, 0.5, 1e308, 5e-324, float("inf"), float("-inf"), float("nan")),
    *("", "x", "0", "inf", "nan", "../../x", "a\0b", "\ud800", "\x1b[2J", "9" * 5000, "é" * 300),
    *([], {}, [[]], [None], {"": None}, [1, "2", None], {"a": {"b": {"c": []}}}),
)
"""What may stand where a reader expects something else."""
WORDS = (
    *("null", "true", "~", "-", ":", "- ", "? ", "[", "]", "{", "}", ",", "#", "&a ", "*a", "<<: "),
    *("!!int ", "!!float ", "!!bool ", "!!timestamp ", "!!python/object:os.system ", "!!binary "),
    *("!!set ", "!!omap ", "!!str ", "!x ", "|\n", ">-\n", "---\n", "...\n", "%YAML 9.9\n", "''"),
    *("2001-99-99", "1:2:3", "0x", "0b2", ".inf", ".nan", "1e400", "=", "\t", "\0", "\ufeff", "\r"),
    *("'" * 3, '"' * 3, "\\", "(" * 300, "[" * 300, "{" * 300, "lambda: ", "\ud800", "\x85"),
)
"""Pieces of YAML, JSON and Python that change what follows them."""


def any_bytes(rng: Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Return a changed copy of some bytes.

    Args:
        rng: the random numbers.
        data: the sample.
        others: samples that parts are taken from.
    """
    found = bytearray(data)
    for _ in range(_times(rng)):
        rng.choice(_OF_BYTES)(rng, found, others)
    return bytes(found)


def any_text(rng: Random, text: str, others: Sequence[str] = ()) -> str:
    """Return a changed copy of a text: lines, parts and `WORDS`."""
    for _ in range(_times(rng)):
        kind = rng.randrange(7)
        begin, end = _part(rng, len(text))
        if kind == 0:
            text = text[:begin] + text[end:]
        elif kind == 1:
            text = text[:begin] + rng.choice(WORDS) + text[begin:]
        elif kind == 2:
            text = text[:begin] + rng.choice(WORDS) + text[end:]
        elif kind == 3:
            text = text[:end] + text[begin:]
        elif kind == 4 and others:
            other = rng.choice(others)
            first, last = _part(rng, len(other))
            text = text[:begin] + other[first:last] + text[end:]
        elif kind == 5:
            text = _other_lines(rng, text)
        else:
            other = chr(rng.choice((rng.randrange(128), rng.randrange(0x3000))))
            text = text[:begin] + other + text[begin + 1 :]
    return text


def any_tree(rng: Random, tree: Any, values: Sequence[Any] = VALUES) -> Any:
    """Return a changed copy of a value of JSON: another leaf, key, order, depth or length."""
    for _ in range(_times(rng)):
        tree = _changed(rng, tree, values)
    return tree


def _changed(rng: Random, tree: Any, values: Sequence[Any]) -> Any:
    inner = isinstance(tree, list | dict) and tree and rng.random() < 0.85
    if not inner:
        return _replaced(rng, tree, values)
    if isinstance(tree, list):
        place = rng.randrange(len(tree))
        found = list(tree)
        if rng.random() < 0.7:
            found[place] = _changed(rng, found[place], values)
        elif rng.random() < 0.5:
            del found[place]
        else:
            found[place:place] = [found[place]] * rng.choice((1, 1, 2, 40))
        return found
    keys = list(tree)
    key = rng.choice(keys)
    found = dict(tree)
    chance = rng.random()
    if chance < 0.7:
        found[key] = _changed(rng, found[key], values)
    elif chance < 0.8:
        del found[key]
    elif chance < 0.9:
        found[rng.choice(("", "x", key + "x", "__class__", key.upper()))] = found.pop(key)
    else:
        found[key] = found[rng.choice(keys)]
    return found


def _replaced(rng: Random, tree: Any, values: Sequence[Any]) -> Any:
    chance = rng.random()
    if chance < 0.6:
        return rng.choice(values)
    if chance < 0.75:
        return [tree]
    if chance < 0.85:
        return {"x": tree}
    if isinstance(tree, bool | None):
        return not tree
    if isinstance(tree, int | float):
        return rng.choice((-tree, tree + 1, tree * 2, str(tree)))
    if isinstance(tree, str):
        return any_text(rng, tree)
    return tree


def _times(rng: Random) -> int:
    """Return how many changes to make: mostly one, sometimes none."""
    return rng.choice((0, 1, 1, 1, 1, 2, 2, 3, 5, 12))


def _part(rng: Random, size: int) -> tuple[int, int]:
    begin = rng.randint(0, size)
    return begin, min(size, begin + rng.choice((1, 1, 2, 4, 8, 30, 300)))


def _other_lines(rng: Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    place = rng.randrange(len(lines))
    kind = rng.randrange(5)
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines.insert(rng.randrange(len(lines)), lines[place])
    elif kind == 2:
        lines[place] = " " * rng.choice((1, 2, 40)) + lines[place]
    elif kind == 3:
        lines[place] = lines[place].lstrip()
    else:
        lines[place : place + 1] = [lines[place]] * rng.randrange(2, 40)
    return "".join(lines)


def _flip(rng: Random, data: bytearray, others: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(rng: Random, data: bytearray, others: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.randrange(256)


def _cut(rng: Random, data: bytearray, others: Sequence[bytes]) -> None:
    begin, end = _part(rng, len(data))
    del data[begin : rng.choice((end, len(data)))]


def _insert(rng: Random, data: bytearray, others: Sequence[bytes]) -> None:
    place = rng.randint(0, len(data))
    data[place:place] = rng.randbytes(rng.choice((1, 2, 8, 64)))


def _repeat(rng: Random, data: bytearray, others: Sequence[bytes]) -> None:
    begin, end = _part(rng, len(data))
    data[begin:begin] = data[begin:end] * rng.choice(
        (1, 2, 16, _MOST_REPEATED // (end - begin + 1))
    )


def _number(rng: Random, data: bytearray, others: Sequence[bytes]) -> None:
    width = rng.choice((1, 2, 4, 8))
    if len(data) >= width:
        place = rng.randrange(0, len(data) - width + 1)
        order = rng.choice(("little", "big"))
        number = rng.choice(_NUMBERS) % (1 << (8 * width))
        data[place : place + width] = number.to_bytes(width, order)


def _splice(rng: Random, data: bytearray, others: Sequence[bytes]) -> None:
    if others:
        other = rng.choice(others)
        begin, end = _part(rng, len(data))
        first, last = _part(rng, len(other))
        data[begin:end] = other[first:last]


_OF_BYTES: tuple[Callable[[Random, bytearray, Sequence[bytes]], None], ...] = (
    *(_flip, _set, _cut, _insert, _repeat, _number, _splice, _number, _flip),
)

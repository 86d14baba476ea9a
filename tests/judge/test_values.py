"""Values cross the channel unchanged, and what is malformed never does."""

from __future__ import annotations

import json
import math
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from engine.judge.decoding import decode
from engine.judge.encoding import encode
from engine.judge.values import MOST_DEPTH, WireError


class NoReferences:
    """A side that has no objects."""

    def export(self, value: object, encode: Callable[[object], Any]) -> Any:
        raise WireError(f"a {type(value).__name__} can't cross")

    def resolve(self, tag: str, payload: Any, decode: Callable[[Any], Any]) -> Any:
        raise WireError("there are no objects")


NONE = NoReferences()


def crossed(value: object) -> Any:
    tree, blobs = encode(value, NONE)
    return decode(json.loads(json.dumps(tree)), [memoryview(bytearray(b)) for b in blobs], NONE)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, of one type, NaN being equal to NaN."""
    if isinstance(one, np.ndarray):
        alike = type(other) is np.ndarray and (one.dtype, one.shape) == (other.dtype, other.shape)
        return alike and (
            all(map(same, one.ravel().tolist(), other.ravel().tolist()))
            if one.dtype.kind == "O"
            else one.tobytes() == other.tobytes()
        )
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple | deque):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            same(a, c) and same(b, d)
            for (a, b), (c, d) in zip(one.items(), other.items(), strict=True)
        )
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, float | np.floating):
        return bool(one == other or (np.isnan(one) and np.isnan(other)))
    return bool(one == other)


numbers = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(1 << 300), max_value=1 << 300),
    st.floats(),
    st.complex_numbers(),
    st.fractions(),
    st.decimals(allow_nan=False),
    arrays.from_dtype(np.dtype("float32")),
    arrays.from_dtype(np.dtype("int16")),
    arrays.from_dtype(np.dtype("complex64"), allow_nan=False),
)
texts = st.one_of(st.text(), st.text(st.characters(codec=None)), st.binary())
keys = st.one_of(st.integers(), st.text(), st.booleans(), st.none(), st.tuples(st.integers()))
dtypes = st.one_of(
    arrays.scalar_dtypes().filter(lambda dtype: dtype.kind in "biufcMm"),
    arrays.byte_string_dtypes(max_len=8),
    arrays.unicode_string_dtypes(max_len=8),
)
filled = arrays.arrays(dtypes, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0))
values = st.recursive(
    st.one_of(numbers, texts, filled),
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.lists(inner).map(deque),
        st.dictionaries(keys, inner),
        st.dictionaries(st.text(), inner),
        st.sets(keys),
        st.frozensets(keys),
    ),
    max_leaves=20,
)


@given(values)
def test_a_value_crosses_unchanged(value: object) -> None:
    assert same(value, crossed(value))


@pytest.mark.parametrize(
    "value",
    [range(2, 9, 3), slice(None, 3, 1), float, np.float32, b"", np.zeros((0, 3)), -0.0],
)
def test_what_else_is_plain(value: object) -> None:
    found = crossed(value)
    assert same(value, found)
    if isinstance(value, float):
        assert math.copysign(1, found) == math.copysign(1, value)


def test_subclasses_cross_as_what_they_are_one_of() -> None:
    class Level(IntEnum):
        LOW = 1

    class Words(str):
        pass

    class Numbers(list[int]):
        def __iter__(self) -> Any:
            raise RuntimeError("it is read as a list, not as it likes")

    assert same(crossed(defaultdict(int, a=1)), {"a": 1})
    assert same(crossed(OrderedDict(a=1)), {"a": 1})
    assert same(crossed(Words("x")), "x")
    assert same(crossed(Numbers([1, 2])), [1, 2])
    assert same(crossed(np.matrix([[1.0]])), np.array([[1.0]]))
    with pytest.raises(WireError):  # it has an identity
        crossed(Level.LOW)


def test_a_named_tuple_keeps_its_names() -> None:
    Point = namedtuple("Point", "x y")
    found = crossed([Point(1, 2.5)])[0]
    assert (found.x, found.y, type(found)) == (1, 2.5, Point)
    Renamed = namedtuple("Renamed", "x class", rename=True)
    assert crossed(Renamed(1, 2))._1 == 2


def test_an_array_of_objects_keeps_its_shape() -> None:
    ragged = np.empty((2, 1), dtype=object)
    ragged[:, 0] = [[1, 2], [3]]
    found = crossed(ragged)
    assert found.shape == (2, 1)
    assert found[0, 0] == [1, 2]


def test_what_comes_over_may_be_changed() -> None:
    found = crossed(np.arange(3.0))
    found[0] = 7.0
    assert found[0] == 7.0


def test_a_value_that_is_too_deep() -> None:
    value: Any = 1
    for _ in range(MOST_DEPTH + 5):
        value = [value]
    with pytest.raises(WireError, match="levels deep"):
        encode(value, NONE)
    with pytest.raises(WireError, match="levels deep"):
        decode(value, [], NONE)
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(WireError):
        encode(cycle, NONE)


HOSTILE: list[Any] = [
    {},
    {"t": 1},
    {"t": [1], "d": []},
    {"nothing": 1},
    {"__class__": "x"},
    {"a": ["<f8", [3], 0]},  # eight bytes, not twenty-four
    {"a": ["<f8", [-1], 0]},
    {"a": ["<f8", [True], 0]},
    {"a": ["|O", [1], 0]},
    {"a": ["O8", [1], 0]},
    {"a": ["<f8", [1], 2]},
    {"a": ["<f8", [1], -1]},
    {"a": ["<f8", [1], True]},
    {"a": ["<f8", [1] * 40, 0]},
    {"a": ["|b1", [8], 1]},  # bytes that are neither true nor false
    {"a": ["<U0", [10**12], 0]},
    {"a": ["<f3", [1], 0]},
    {"a": ["f8,f8", [1], 0]},
    {"a": [["f8"], [1], 0]},
    {"a": "<f8"},
    {"u": [[10**9], [1]]},
    {"g": ["<f8", "x"]},
    {"g": ["<i1", 4000]},
    {"g": ["|O", 1]},
    {"g": ["|S3", 3]},
    {"g": ["<M8[s]", 3]},
    {"g": ["<f16", 3]},
    {"g": [None, 3]},
    {"T": [1]},
    {"d": [[1]]},
    {"d": [[{"o": {}}, 1]]},
    {"o": [1]},
    {"s": [[1]]},
    {"s": {"a": 1}},
    {"n": [["x"], "A B", [1]]},
    {"n": [["x", 3], "A", [1, 2]]},
    {"n": [["x"], "A", []]},
    *(
        {"n": [["x", name], "A", [1, 2]]}
        for name in ("__eq__", "__radd__", "__array__", "__getattr__", "_fields", "_0", "_")
    ),
    {"c": [1]},
    {"c": ["1", 2]},
    {"i": 5},
    {"i": "f" * (1 << 20)},
    {"f": ["1", "0"]},
    {"D": "one"},
    {"D": "9" * (1 << 20)},
    {"r": [1, 2]},
    {"r": [1, 2, 0]},
    {"r": [1.0, 2, 3]},
    {"y": "os.system"},
    {"y": "numpy.load"},
    {"x": 1},
    {"w": 1},
    {"b": 3},
    {"b": [0]},
]


@pytest.mark.parametrize("tree", HOSTILE, ids=repr)
def test_what_is_malformed_is_refused(tree: Any) -> None:
    with pytest.raises(WireError):
        decode(tree, [bytes(8), b"\2" * 8], NONE)
    with pytest.raises(WireError):
        decode([1, {"t": [tree]}], [bytes(8), b"\2" * 8], NONE)


json_trees = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.floats(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from([*"toqdszclbiaugTfDynrxw"]), inner, max_size=2),
    ),
    max_leaves=12,
)


@given(json_trees)
def test_any_tree_is_a_value_or_refused(tree: Any) -> None:
    try:
        decode(tree, [bytes(8), b""], NONE)
    except WireError:
        return


def test_exact_numbers_stay_exact() -> None:
    for value in (Fraction(1, 3), Decimal("0.1"), 1 << 62, -(1 << 63), 1 << 64):
        assert same(crossed(value), value)

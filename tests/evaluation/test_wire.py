"""Cases to bytes and back: what a candidate is called with is what the problem said."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from engine.core import ArraySpec, Case
from engine.evaluation.wire import decode_cases, encode_cases

ARRAYS = hnp.arrays(
    dtype=st.sampled_from(["float64", "float32", ">f8", "int16", "uint64", "bool"]),
    shape=hnp.array_shapes(min_dims=0, min_side=0),
)
NUMBERS = st.integers() | st.floats(allow_nan=False)
LENGTHS = st.integers(0, 9) | st.builds(
    range, st.integers(0, 9), st.integers(10, 20), st.integers(1, 3)
)
SPECS = st.builds(
    ArraySpec,
    shape=st.lists(LENGTHS, max_size=3).map(tuple),
    dtype=st.sampled_from(["float64", "int8"]),
    finite=st.booleans(),
)
CASES = st.builds(
    Case,
    name=st.text(),
    args=st.lists(ARRAYS | NUMBERS, max_size=3).map(tuple),
    kwargs=st.dictionaries(st.text(), ARRAYS | NUMBERS, max_size=3),
    outputs=st.dictionaries(st.text(), SPECS, max_size=3),
)


def assert_same(got: object, expected: object) -> None:
    assert type(got) is type(expected)
    if isinstance(got, np.ndarray) and isinstance(expected, np.ndarray):
        assert got.dtype == expected.dtype and got.flags.writeable
        np.testing.assert_array_equal(got, expected)
    else:
        assert got == expected


@given(st.lists(CASES, max_size=3))
def test_cases_arrive_as_they_were(cases: list[Case]) -> None:
    arrived = decode_cases(encode_cases(cases))
    assert len(arrived) == len(cases)
    for got, case in zip(arrived, cases, strict=True):
        assert (got.name, got.outputs) == (case.name, case.outputs)
        assert list(got.kwargs) == list(case.kwargs)
        for a, b in zip(
            [*got.args, *got.kwargs.values()], [*case.args, *case.kwargs.values()], strict=True
        ):
            assert_same(a, b)


def test_what_json_has_no_name_for_arrives_too() -> None:
    case = Case(
        name="c",
        args=(float("inf"), float("nan"), np.float32(0.5), np.int8(3), True),
        outputs={"a": ArraySpec(shape=(range(2, 10_001), 3))},
    )
    ((infinite, nan, half, three, true),) = (got.args for got in decode_cases(encode_cases([case])))
    assert infinite == float("inf") and nan != nan
    assert (half, three, true) == (0.5, 3, True)
    assert type(half) is float and type(three) is int


def test_order_in_memory_does_not_matter() -> None:
    array = np.arange(6, dtype="int16").reshape(2, 3)
    for same in (np.asfortranarray(array), array[:, ::-1][:, ::-1]):
        (case,) = decode_cases(encode_cases([Case(name="c", args=(same,), outputs={})]))
        np.testing.assert_array_equal(case.args[0], array)


def test_arguments_do_not_share_memory() -> None:
    array = np.zeros(3)
    data = encode_cases([Case(name="c", args=(array, array), outputs={})])
    (case,) = decode_cases(data)
    case.args[0][:] = 1
    assert case.args[1].tolist() == [0, 0, 0] == array.tolist()
    assert decode_cases(data)[0].args[0].tolist() == [0, 0, 0]

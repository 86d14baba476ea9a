"""Arrays to bytes and back: what fits comes back equal, what does not fit is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from engine.core import ArraySpec, Case
from engine.evaluation.contract import (
    ContractError,
    check_contract,
    pack,
    packed_size,
    unpack,
)


def case(**outputs: ArraySpec) -> Case:
    return Case(name="case", args=(), outputs=outputs)


@given(hnp.arrays(dtype=st.sampled_from(["float64", "int32", "bool"]), shape=hnp.array_shapes()))
def test_what_is_packed_is_unpacked(array: np.ndarray) -> None:
    one = case(a=ArraySpec(shape=array.shape, dtype=array.dtype.name, finite=False))
    data = pack(array, one)
    assert len(data) == array.nbytes <= packed_size(one)
    (outputs,) = unpack(data, [one])
    np.testing.assert_array_equal(outputs["a"], array)
    assert outputs["a"].dtype == array.dtype and outputs["a"].flags.writeable


@pytest.mark.parametrize(
    ("value", "dtype", "fits"),
    [
        (3.0, "int64", True),
        (3.5, "int64", False),
        (-1, "uint64", False),
        (2**63, "int64", False),
        (2**53, "float64", True),
        (2**53 + 1, "float64", False),
        (0.1, "float32", False),
        (0.5, "float32", True),
        (1e300, "float32", False),
        (2, "bool", False),
        (1, "bool", True),
        (True, "float64", True),
    ],
)
def test_a_conversion_loses_nothing(value: float, dtype: str, fits: bool) -> None:
    one = case(a=ArraySpec(shape=(), dtype=dtype))
    if fits:
        assert unpack(pack(value, one), [one])[0]["a"] == value
    else:
        with pytest.raises(ContractError, match="can't hold"):
            pack(value, one)


def test_a_single_output_may_be_bare_or_in_a_tuple_or_named() -> None:
    one = case(a=ArraySpec(shape=(2,)))
    assert pack([1, 2], one) == pack(([1, 2],), one) == pack({"a": [1, 2]}, one)


def test_memory_order_and_byte_order_do_not_matter() -> None:
    one = case(a=ArraySpec(shape=(2, 3)))
    array = np.arange(6.0).reshape(2, 3)
    assert pack(np.asfortranarray(array), one) == pack(array.astype(">f8"), one) == array.tobytes()


def test_not_finite_is_allowed_only_where_declared() -> None:
    strict = case(a=ArraySpec(shape=(2,)))
    loose = case(a=ArraySpec(shape=(2,), finite=False))
    data = pack([1, np.inf], loose)
    assert unpack(data, [loose])[0]["a"][1] == np.inf
    with pytest.raises(ContractError, match=r"case: a\[1\] is inf"):
        unpack(data, [strict])


def test_mixed_types_stay_aligned() -> None:
    one = case(a=ArraySpec(shape=(3,), dtype="int8"), b=ArraySpec(shape=(2,)))
    (outputs,) = unpack(pack(([1, 2, 3], [4, 5]), one), [one])
    assert outputs["b"].flags.aligned and outputs["b"].tolist() == [4, 5]


@pytest.mark.parametrize(
    ("change", "words"),
    [(-16, "0 bytes"), (-1, "15 bytes"), (1, "1 bytes too many"), (8, "8 bytes")],
)
def test_a_wrong_number_of_bytes_is_refused(change: int, words: str) -> None:
    one = case(a=ArraySpec(shape=(2,)))
    with pytest.raises(ContractError, match=words):
        unpack(bytes(16 + change), [one])


OPEN = case(a=ArraySpec(shape=(range(2, 6), 3, range(0, 9, 4)), dtype="int16"))


@pytest.mark.parametrize("shape", [(2, 3, 0), (2, 3, 8), (5, 3, 4)])
def test_a_range_allows_its_lengths(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype="int16").reshape(shape)
    data = pack(array, OPEN)
    assert len(data) <= packed_size(OPEN)
    (outputs,) = unpack(data, [OPEN])
    assert outputs["a"].shape == shape
    np.testing.assert_array_equal(outputs["a"], array)


@pytest.mark.parametrize("shape", [(1, 3, 0), (6, 3, 0), (2, 2, 0), (2, 3, 3), (2, 3, 12), (2, 3)])
def test_a_range_refuses_other_lengths(shape: tuple[int, ...]) -> None:
    with pytest.raises(ContractError, match=r"has shape .*, expected \(2\.\.5, 3, 0\.\.8\)"):
        pack(np.zeros(shape, dtype="int16"), OPEN)


@pytest.mark.parametrize("lengths", [(1, 0), (6, 0), (2, 3), (2**64 - 1, 0), (2**63, 8), (2, 12)])
def test_a_forged_length_is_refused(lengths: tuple[int, int]) -> None:
    data = b"".join(length.to_bytes(8, "little") for length in lengths)
    with pytest.raises(ContractError, match="has a dimension of"):
        unpack(data + bytes(packed_size(OPEN)), [OPEN])


@pytest.mark.parametrize("size", [0, 1, 7, 8, 15, 16, 17, 16 + 2 * 2 * 3 * 4 - 1])
def test_a_forged_array_that_is_cut_is_refused(size: int) -> None:
    data = (2).to_bytes(8, "little") + (4).to_bytes(8, "little") + bytes(48)
    with pytest.raises(ContractError):
        unpack(data[:size], [OPEN])


def test_a_length_takes_nothing_from_the_next_array() -> None:
    two = case(a=ArraySpec(shape=(range(1, 4),)), b=ArraySpec(shape=(2,)))
    data = pack(([1.0], [2.0, 3.0]), two)
    longer = (3).to_bytes(8, "little") + data[8:]
    with pytest.raises(ContractError, match="b has 0 bytes, expected 16"):
        unpack(longer, [two])


@given(st.binary(max_size=80))
def test_any_bytes_are_arrays_within_the_contract_or_refused(data: bytes) -> None:
    try:
        (outputs,) = unpack(data, [OPEN])
    except ContractError:
        return
    assert outputs["a"].shape[0] in range(2, 6) and outputs["a"].shape[2] in range(0, 9, 4)
    assert len(data) == 16 + outputs["a"].nbytes


@pytest.mark.parametrize(
    "outputs",
    [
        {},
        {"seconds": ArraySpec(shape=())},
        {"a": ArraySpec(shape=(range(3, 3),))},
        {"a": ArraySpec(shape=(range(-1, 3),))},
        {"a": ArraySpec(shape=(-1,))},
        {"a": ArraySpec(shape=(2,), dtype="object")},
        {"a": ArraySpec(shape=(2,), dtype="U3")},
    ],
)
def test_a_contract_that_can_not_be_checked_is_refused(outputs: dict[str, ArraySpec]) -> None:
    with pytest.raises(ValueError, match="case"):
        check_contract([case(**outputs)])


def test_a_contract_that_can_be_checked_is_accepted() -> None:
    check_contract([OPEN, case(b=ArraySpec(shape=(), dtype="bool"))])


def test_a_boolean_is_true_or_false() -> None:
    one = case(a=ArraySpec(shape=(2,), dtype="bool"))
    assert unpack(b"\1\0", [one])[0]["a"].tolist() == [True, False]
    for odd in (b"\1\2", b"\xff\0"):
        with pytest.raises(ContractError, match="neither true nor false"):
            unpack(odd, [one])

"""Arrays to bytes and back: what fits comes back equal, what does not fit is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from engine.core import ArraySpec, Case
from engine.evaluation.contract import ContractError, pack, packed_size, unpack


def case(**outputs: ArraySpec) -> Case:
    return Case(name="case", args=(), outputs=outputs)


@given(hnp.arrays(dtype=st.sampled_from(["float64", "int32", "bool"]), shape=hnp.array_shapes()))
def test_what_is_packed_is_unpacked(array: np.ndarray) -> None:
    one = case(a=ArraySpec(shape=array.shape, dtype=array.dtype.name, finite=False))
    data = pack(array, one)
    assert len(data) == packed_size(one)
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


@pytest.mark.parametrize("change", [-1, 1, 8])
def test_a_wrong_number_of_bytes_is_refused(change: int) -> None:
    one = case(a=ArraySpec(shape=(2,)))
    with pytest.raises(ContractError, match="expected 16"):
        unpack(bytes(16 + change), [one])

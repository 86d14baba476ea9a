"""The contract between a problem and what a program returns: arrays to bytes and back.

`pack` runs in the candidate's process and explains what is wrong with a returned value. `unpack`
runs in the trusted process and believes nothing. It takes exactly as many bytes as the contract
says, so a program that forges bytes gains nothing over one that returns arrays.

An array is packed as the lengths of those dimensions that the contract leaves open, 8 bytes each,
and its elements in C order.

Does not cover: whether the values are allowed or good; that is the problem's ``score``.
"""

import math
from collections.abc import Mapping, Sequence
from operator import contains
from typing import Any

import numpy as np

from engine.core import SECONDS, Array, ArraySpec, Case, Outputs

NUMERIC_KINDS = "biuf"
"""NumPy kinds that a contract may declare and a program may return: bool, integers, floats."""


_LENGTH_BYTES = 8


class ContractError(Exception):
    """What a program returned breaks its contract; the text says how, in one line."""


def check_contract(cases: Sequence[Case]) -> None:
    """Check that the cases declare something that can be checked.

    Raises:
        ValueError: an output is not declared as booleans, integers or floats, a dimension allows
            no length, the name is taken, or there is no output.
    """
    for case in cases:
        if not case.outputs:
            raise ValueError(f"{case.name} declares no outputs")
        if SECONDS in case.outputs:
            raise ValueError(f"{case.name}: an output can't be named {SECONDS!r}")
        for name, spec in case.outputs.items():
            if not all(lengths and lengths[0] >= 0 for lengths in map(_allowed, spec.shape)):
                raise ValueError(f"{case.name}: {name} has a dimension without a length")
            if np.dtype(spec.dtype).kind not in NUMERIC_KINDS:
                raise ValueError(f"{case.name}: {name} has dtype {spec.dtype}, which is no number")


def packed_size(case: Case) -> int:
    """Return the most bytes that `pack` makes for ``case``."""
    size = 0
    for spec in case.outputs.values():
        longest = [lengths[-1] for lengths in map(_allowed, spec.shape)]
        size += math.prod(longest) * np.dtype(spec.dtype).itemsize + _LENGTH_BYTES * len(longest)
    return size


def pack(returned: object, case: Case) -> bytes:
    """Return the declared outputs in ``returned``, in order, each as C-ordered bytes.

    Raises:
        ContractError: ``returned`` is not what ``case`` declares.
    """
    values = _declared_values(returned, case)
    return b"".join(
        _convert(value, spec, f"{case.name}: {name}")
        for value, (name, spec) in zip(values, case.outputs.items(), strict=True)
    )


def unpack(data: bytes | bytearray, cases: Sequence[Case]) -> list[Outputs]:
    """Return the arrays of all ``cases`` from the bytes of `pack`, each writable and aligned.

    Raises:
        ContractError: the bytes are too few or too many, a boolean is neither true nor false, or a
            value is not finite where the contract says so.
    """
    outputs: list[Outputs] = []
    rest = memoryview(data)
    for case in cases:
        arrays: dict[str, Array] = {}
        for name, spec in case.outputs.items():
            arrays[name], rest = _take(rest, spec, f"{case.name}: {name}")
        outputs.append(arrays)
    if rest:
        raise ContractError(f"the result has {len(rest)} bytes too many")
    return outputs


def _take(data: memoryview, spec: ArraySpec, where: str) -> tuple[Array, memoryview]:
    """Return the array that ``data`` begins with, and the rest."""
    shape: list[int] = []
    for lengths in map(_allowed, spec.shape):
        length = lengths[0]
        if len(lengths) > 1:
            if len(data) < _LENGTH_BYTES:
                raise ContractError(f"{where} has {len(data)} bytes, too few for its shape")
            length, data = int.from_bytes(data[:_LENGTH_BYTES], "little"), data[_LENGTH_BYTES:]
        if length not in lengths:
            raise ContractError(f"{where} has a dimension of {length}, expected {_named(spec)}")
        shape.append(length)
    size = math.prod(shape) * np.dtype(spec.dtype).itemsize
    if len(data) < size:
        raise ContractError(f"{where} has {len(data)} bytes, expected {size}")
    array = np.frombuffer(data[:size], dtype=spec.dtype).reshape(shape).copy()
    if array.dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
        # Each such byte counts as true, but sorting tells them apart; no program returns them.
        raise ContractError(f"{where} holds a byte that is neither true nor false")
    _check_finite(array, spec, where)
    return array, data[size:]


def _allowed(dimension: int | range) -> range:
    return dimension if isinstance(dimension, range) else range(dimension, dimension + 1)


def _named(spec: ArraySpec) -> str:
    """Return the shape that ``spec`` asks for, as it is written in messages."""
    names = [
        f"{lengths[0]}..{lengths[-1]}" if len(lengths) > 1 else str(lengths[0])
        for lengths in map(_allowed, spec.shape)
    ]
    return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"


def _declared_values(returned: object, case: Case) -> list[Any]:
    names = list(case.outputs)
    if isinstance(returned, Mapping):
        missing = [name for name in names if name not in returned]
        if missing:
            raise ContractError(f"{case.name}: the returned mapping has no {missing[0]!r}")
        return [returned[name] for name in names]
    if isinstance(returned, tuple) and len(returned) == len(names):
        return list(returned)
    if len(names) == 1:
        return [returned]
    got = f"{len(returned)} values" if isinstance(returned, tuple) else type(returned).__name__
    raise ContractError(
        f"{case.name}: returned {got}, expected a mapping or a tuple with {', '.join(names)}"
    )


def _convert(value: Any, spec: ArraySpec, where: str) -> bytes:
    if value is None:
        raise ContractError(f"{where} is None, expected an array of shape {_named(spec)}")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ContractError(f"{where} can't be read as an array: {error}") from error
    if array.dtype.kind not in NUMERIC_KINDS:
        held = f"dtype {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        raise ContractError(f"{where} holds {held}, expected {spec.dtype}")
    allowed = [_allowed(dimension) for dimension in spec.shape]
    if len(array.shape) != len(allowed) or not all(map(contains, allowed, array.shape)):
        raise ContractError(f"{where} has shape {array.shape}, expected {_named(spec)}")
    _check_finite(array, spec, where)
    converted = array if array.dtype == spec.dtype else _lossless(array, spec, where)
    opens = [
        length.to_bytes(_LENGTH_BYTES, "little")
        for length, lengths in zip(array.shape, allowed, strict=True)
        if len(lengths) > 1
    ]
    return b"".join([*opens, converted.tobytes()])


def _lossless(array: Array, spec: ArraySpec, where: str) -> Array:
    with np.errstate(all="ignore"):  # a lossy conversion is found by comparing, below
        converted = array.astype(spec.dtype)
        back = converted.astype(array.dtype)
    # The signs differ where a negative number wrapped to an unsigned one and back again.
    same = np.array_equal(back, array, equal_nan=array.dtype.kind == "f")
    if not same or not np.array_equal(converted < 0, array < 0):
        raise ContractError(f"{where} has {array.dtype} values that {spec.dtype} can't hold")
    return converted


def _check_finite(array: Array, spec: ArraySpec, where: str) -> None:
    if not spec.finite or array.dtype.kind != "f":
        return
    finite = np.isfinite(array)
    if not finite.all():
        first = tuple(int(i) for i in np.argwhere(~finite)[0])
        index = f"[{', '.join(map(str, first))}]" if first else ""
        raise ContractError(f"{where}{index} is {array[first]}, expected finite values")

"""The contract between a problem and what a program returns: arrays to bytes and back.

`pack` runs beside the candidate and explains what is wrong with a returned value. `unpack` runs
in the trusted process and believes nothing: it takes exactly as many bytes as the contract
says, so a program that forges its own bytes can say no more than one that returns arrays.

Does not cover: whether the values are allowed or good; that is the problem's ``score``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.core import Array, ArraySpec, Case, Outputs

NUMERIC_KINDS = "biuf"
"""NumPy kinds that a contract may declare and a program may return: bool, integers, floats."""


class ContractError(Exception):
    """What a program returned breaks its contract; the text says how, in one line."""


def check_contract(cases: Sequence[Case]) -> None:
    """Check that the cases declare something that can be checked.

    Raises:
        ValueError: an output is not declared as booleans, integers or floats, or there is none.
    """
    for case in cases:
        if not case.outputs:
            raise ValueError(f"{case.name} declares no outputs")
        for name, spec in case.outputs.items():
            if np.dtype(spec.dtype).kind not in NUMERIC_KINDS:
                raise ValueError(f"{case.name}: {name} has dtype {spec.dtype}, which is no number")


def packed_size(case: Case) -> int:
    """Return the number of bytes that `pack` makes for ``case``."""
    return sum(_array_size(spec) for spec in case.outputs.values())


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
        ContractError: the bytes are too few or too many, or a value is not finite where the
            contract says so.
    """
    expected = sum(packed_size(case) for case in cases)
    if len(data) != expected:
        raise ContractError(f"the result has {len(data)} bytes, expected {expected}")
    offset = 0
    outputs: list[Outputs] = []
    for case in cases:
        arrays: dict[str, Array] = {}
        for name, spec in case.outputs.items():
            count = math.prod(spec.shape)
            flat = np.frombuffer(data, dtype=spec.dtype, count=count, offset=offset)
            arrays[name] = flat.reshape(spec.shape).copy()
            offset += flat.nbytes
            _check_finite(arrays[name], spec, f"{case.name}: {name}")
        outputs.append(arrays)
    return outputs


def _array_size(spec: ArraySpec) -> int:
    return math.prod(spec.shape) * np.dtype(spec.dtype).itemsize


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
        raise ContractError(f"{where} is None, expected an array of shape {spec.shape}")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ContractError(f"{where} can't be read as an array: {error}") from error
    if array.dtype.kind not in NUMERIC_KINDS:
        held = f"dtype {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        raise ContractError(f"{where} holds {held}, expected {spec.dtype}")
    if array.shape != spec.shape:
        raise ContractError(f"{where} has shape {array.shape}, expected {spec.shape}")
    _check_finite(array, spec, where)
    with np.errstate(all="ignore"):  # a lossy conversion is found by comparing, below
        converted = array.astype(spec.dtype)
        back = converted.astype(array.dtype)
    # The signs differ where a negative number wrapped to an unsigned one and back again.
    same = np.array_equal(back, array, equal_nan=array.dtype.kind == "f")
    if not same or not np.array_equal(converted < 0, array < 0):
        raise ContractError(f"{where} has {array.dtype} values that {spec.dtype} can't hold")
    return converted.tobytes()


def _check_finite(array: Array, spec: ArraySpec, where: str) -> None:
    if not spec.finite:
        return
    finite = np.isfinite(array)
    if not finite.all():
        first = tuple(int(i) for i in np.argwhere(~finite)[0])
        index = f"[{', '.join(map(str, first))}]" if first else ""
        raise ContractError(f"{where}{index} is {array[first]}, expected finite values")

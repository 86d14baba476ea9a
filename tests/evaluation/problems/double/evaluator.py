"""The smallest problem that has all that a contract can have: two cases, two outputs."""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.core import ArraySpec, Case, Outputs, Rejected

OUTPUTS = {"doubled": ArraySpec(shape=(4,)), "count": ArraySpec(shape=(), dtype="int64")}
INPUTS = (np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.0, -0.5, 1.5]))


def cases() -> Sequence[Case]:
    return [
        Case(name=f"double {i}", args=(values,), kwargs={"offset": 0.0}, outputs=OUTPUTS)
        for i, values in enumerate(INPUTS)
    ]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Score 1 for the right answer; counts of 98, 99 and 100 ask for trouble."""
    count = int(outputs[0]["count"])
    if count == 98:
        raise Rejected("a count of 98 is not allowed")
    if count == 99:
        raise ZeroDivisionError("a bug in the evaluator")
    if count == 100:
        return {"score": float("nan")}
    error = sum(
        float(np.abs(output["doubled"] - 2 * values).mean())
        for output, values in zip(outputs, INPUTS, strict=True)
    )
    return {"score": 1.0 / (1.0 + error), "error": error}

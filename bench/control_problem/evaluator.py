"""A problem that is evaluated in no time, for ``bench.control``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.core import ArraySpec, Case, Outputs


def cases() -> Sequence[Case]:
    """Return the one call ``run()``."""
    return [Case(name="steps", args=(), outputs={"steps": ArraySpec(shape=(32,))})]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Score the steps: 1 / (1 + the sum of their squares)."""
    (output,) = outputs
    return {"score": 1 / (1 + float(np.square(output["steps"]).sum()))}

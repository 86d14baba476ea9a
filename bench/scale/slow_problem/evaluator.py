"""A problem whose evaluation is 200 ms of waiting: for ``bench.scale`` and ``bench.outposts``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from engine.core import ArraySpec, Case, Outputs

SECONDS = 0.2


def cases() -> Sequence[Case]:
    """Return the one call ``run()``."""
    return [Case(name="steps", args=(), outputs={"steps": ArraySpec(shape=(16,))})]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Wait; then score the steps: 1 / (1 + the sum of their squares)."""
    time.sleep(SECONDS)
    (output,) = outputs
    return {"score": 1 / (1 + float(np.square(output["steps"]).sum()))}

"""A small problem, as text, and what the loader says of a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core import UserError
from engine.problem import load_problem

DECLARATION = """
direction: minimise
entry_point: solve
limits: {seconds: 0.5, memory_mb: 64}
isolate_cases: true
known_scores: [{score: 1.5, source: a paper}]
"""
EVALUATOR = """
from engine.core import ArraySpec, Case

def cases():
    return [Case(name="one", args=(2.0,), outputs={"x": ArraySpec(shape=())})]

def score(outputs):
    return {"score": float(outputs[0]["x"])}
"""


BESIDE = """
from .cases import cases, NAME
from .parts.scoring import score
"""


WITH_DATA = """
from pathlib import Path
from engine.core import ArraySpec, Case, Stage, UserError

class Evaluator:
    def __init__(self, factor):
        self.factor = factor

    def cases(self):
        if self.factor < 0:
            raise UserError("the factor is negative; give one above 0")
        return [Case(name="one", args=(self.factor,), outputs={"x": ArraySpec(shape=())})]

    def score(self, outputs):
        return {"score": self.factor * float(outputs[0]["x"])}

    def screens(self):
        return [Stage(name="quick", cases=tuple(self.cases()), score=self.score)]

def with_data(path: Path | None):
    if path is None:
        return Evaluator(2.0)
    if path.is_dir():
        path = path / "factor.txt"
    try:
        return Evaluator(float(path.read_text()))
    except ValueError as error:
        raise UserError(f"{path} holds no number; write one") from error
"""


def refused(folder: Path, data: Path | None = None) -> str:
    """Return the message with which the loader refuses ``folder``, or ``data``."""
    with pytest.raises(UserError) as refusal:
        load_problem(folder, data=data)
    message = str(refusal.value)
    assert "\n" not in message
    assert str(folder if data is None else data) in message
    return message

"""A problem to check, as text: sort four numbers, with a score written in every wrong way."""

from collections.abc import Callable

from engine.core import Problem

DECLARATION = """
direction: maximise
entry_point: order
limits: {seconds: 2, memory_mb: 128}
target: 4
"""
EVALUATOR = """
import random
import numpy as np
from engine.core import SECONDS, ArraySpec, Case, Rejected, Stage

VALUES = np.array([3.0, 1.0, 2.0, 5.0])
LAST = [0.0]

def cases():
    outputs = {"ordered": ArraySpec(shape=(4,)), "claim": ArraySpec(shape=(), finite=False)}
    return [Case(name="four", args=(VALUES,), outputs=outputs)]

def score(outputs):
    ordered, claim = outputs[0]["ordered"], float(outputs[0]["claim"])
    SCORE
"""
HONEST = """if sorted(ordered) != sorted(VALUES):
        raise Rejected("other numbers")
    return {"score": float((np.diff(ordered) > 0).sum()) + 1.0, "first": float(ordered[0])}"""
INITIAL = """import numpy as np


def order(values):
    return values, 0.0
"""

MakeProblem = Callable[..., Problem]

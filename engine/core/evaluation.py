"""A verdict on a program: its score, or why it has none.

Does not cover how it comes about: ``engine.evaluation``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Failure(enum.StrEnum):
    """Why an evaluation gave no score."""

    ERROR = "error"  # the program raised, or has no entry point
    TIMEOUT = "timeout"  # it ran longer than its limit
    MEMORY = "memory"  # it asked for more memory than its limit
    CRASH = "crash"  # its process died
    OUTPUT = "output"  # it returned something else than its contract says
    REJECTED = "rejected"  # the outputs are well formed but not allowed
    SCREENED = "screened"  # a cheap stage found it too bad to be worth the next one


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """The verdict on one program. Either ``score`` or ``failure`` is None, never both.

    Attributes:
        score: the problem's score, unrounded.
        failure: why there is no score.
        message: one line that says what went wrong; empty for a valid program.
        metrics: all metrics of the problem, ``score`` among them.
        artifacts: text that may help the next attempt: ``traceback``, ``stdout``.
        seconds: wall seconds of the program's own run.
        peak_bytes: largest resident size of the program's process.
    """

    score: float | None
    failure: Failure | None
    message: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    peak_bytes: int = 0

"""That a cheap stage of the cascade screens no more, and why.

Does not cover when that is found: ``engine.evaluation.screen``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True, slots=True)
class SwitchedOff:
    """A cheap stage ranks too badly to go on screening. As an event, its subject is its name.

    Attributes:
        stage: its name.
        iteration: the first one whose candidates skip it.
        correlation: its rank correlation with the full score, as estimated.
        error: two standard errors of the estimate, upwards.
        pairs: fully evaluated candidates that the estimate rests on.
    """

    KIND: ClassVar[str] = "switched_off"
    stage: str
    iteration: int
    correlation: float
    error: float
    pairs: int

    @property
    def subject(self) -> str:
        return self.stage

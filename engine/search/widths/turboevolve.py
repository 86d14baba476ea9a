"""TurboEvolve's schedule: wider when nothing improves, narrower when everything does.

Source: TurboEvolve, section 3.2, "Island-Level Adaptive K Scheduling": K_init stands for the first
iterations and only then does the adaptation begin, its statistics included. Windows of T iterations
follow, without overlap. With c the iterations of a window that replaced a cell, at its end

    K <- min(7, K + 2)  if c = 0,
    K <- max(1, K - 2)  if c = T,
    K stays             otherwise.

So K can change for the first time after the sixth iteration.
"""

from engine.search.widths import WIDTHS, IterationOutcome, WidthPolicy, WidthSettings
from engine.section import section

STEPS = (1, 3, 5, 7)
"""The values of K, one step apart."""
FIRST_WIDTH = 5
"""K_init, before the adaptation begins."""
FIRST_ITERATIONS = 3
"""Iterations with K_init."""
WINDOW = 3
"""T, the iterations that one update looks at."""


@WIDTHS.register("turboevolve")
@section
class TurboEvolveSettings(WidthSettings):
    """No parameters."""

    def make(self, *, k: int, seed: int, island: int) -> "TurboEvolveWidth":
        """Return the policy of an island, at K_init."""
        return TurboEvolveWidth()


class TurboEvolveWidth(WidthPolicy):
    """A step up after a window without a replaced cell, a step down after one full of them."""

    def __init__(self) -> None:
        """Start at K_init."""
        self._step = STEPS.index(FIRST_WIDTH)
        self._told = 0
        self._replacing = 0  # c: iterations of this window that replaced a cell

    def k(self, *, iteration: int) -> int:
        """Return K as the last complete window left it."""
        return STEPS[self._step]

    def tell(self, outcome: IterationOutcome) -> None:
        """Count one iteration."""
        self._told += 1
        adapting = self._told - FIRST_ITERATIONS
        if adapting <= 0:
            return
        self._replacing += outcome.improved > 0  # u = 1
        if adapting % WINDOW:
            return
        if self._replacing == 0:
            self._step = min(len(STEPS) - 1, self._step + 1)
        elif self._replacing == WINDOW:
            self._step = max(0, self._step - 1)
        self._replacing = 0

"""Width: how many children the next call of an island asks for.

A policy belongs to one island. Its state is a fold over the outcomes that it was told, in the
order of their iterations: no clock, no generator that is carried on. So a policy that is told
what a log holds goes on as the one that wrote the log.

Covers: the interface, a fixed K and TurboEvolve's schedule. Does not cover the choice by cost
(``engine.search.cost_aware``), or how an outcome is measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from engine.search.order import in_order

# TurboEvolve, section 3.2.
WIDTHS = (1, 3, 5, 7)
"""The values of K, one step apart."""
FIRST_WIDTH = 5
"""K_init, before the adaptation begins."""
FIRST_ITERATIONS = 3
"""Iterations with K_init."""
WINDOW = 3
"""T, the iterations that one update looks at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IterationOutcome:
    """What one iteration of an island brought and cost; its verdicts are all in.

    Attributes:
        island: whose iteration it was.
        iteration: its number, from 0; an island's own have gaps where others' are.
        parent: id of the program that was changed.
        children: how many were generated.
        improved: those of them that took over a cell of the island's archive, each compared with
            the archive as it was before the iteration. Without an archive those that beat the best
            program that the island began with or made before.
        model_seconds: of the engine: of each of its steps' wall seconds the share of the call's
            children among all requests in the step.
        computed_tokens: prompt tokens that were computed, over all children.
        repeated_tokens: those of them that each child computed for itself: all but those of the
            child that computed most.
        decode_steps: tokens of the longest child.
        generated_tokens: tokens of all children.
        evaluation_seconds: what its candidates took, summed, over the number of evaluators.

    Raises:
        ValueError: a count or a time is negative or not finite, or a part exceeds its whole.
    """

    island: int
    iteration: int
    parent: str
    children: int
    improved: int
    model_seconds: float
    computed_tokens: int
    repeated_tokens: int
    decode_steps: int
    generated_tokens: int
    evaluation_seconds: float

    def __post_init__(self) -> None:
        for name in set(self.__slots__) - {"parent"}:
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} is {value!r}; it must be 0 or more and finite")
        for part, whole in (
            ("improved", "children"),
            ("repeated_tokens", "computed_tokens"),
            ("decode_steps", "generated_tokens"),
        ):
            if getattr(self, part) > getattr(self, whole):
                raise ValueError(f"{part} ({getattr(self, part)}) exceeds {whole}: {self}")
        if self.decode_steps * self.children < self.generated_tokens:
            raise ValueError(f"no child is longer than decode_steps ({self.decode_steps}): {self}")


class WidthPolicy(Protocol):
    """How many children each call of one island asks for."""

    def k(self, *, iteration: int) -> int:
        """Return K for an iteration, given what was told; asking again changes nothing."""

    def tell(self, outcome: IterationOutcome) -> None:
        """Take in what an iteration brought.

        A call that was given up, as a wrong guess of the next parent is, is not told.

        Raises:
            ValueError: this iteration or a later one was told before.
        """


class FixedWidth:
    """The same K in every call."""

    def __init__(self, *, k: int) -> None:
        """Keep K, 1 or more."""
        if k < 1:
            raise ValueError(f"k is {k}; it must be 1 or more")
        self._k = k

    def k(self, *, iteration: int) -> int:
        """Return K."""
        return self._k

    def tell(self, outcome: IterationOutcome) -> None:
        """Learn nothing."""


class TurboEvolveWidth:
    """TurboEvolve's schedule: wider when nothing improves, narrower when everything does.

    Section 3.2, "Island-Level Adaptive K Scheduling": K_init stands for the first iterations and
    only then does the adaptation begin, its statistics included. Windows of T iterations follow,
    without overlap. With c the iterations of a window that replaced a cell, at its end

        K <- min(7, K + 2)  if c = 0,
        K <- max(1, K - 2)  if c = T,
        K stays             otherwise.

    So K can change for the first time after the sixth iteration.
    """

    def __init__(self) -> None:
        """Start at K_init."""
        self._step = WIDTHS.index(FIRST_WIDTH)
        self._last = -1
        self._told = 0
        self._replacing = 0  # c: iterations of this window that replaced a cell

    def k(self, *, iteration: int) -> int:
        """Return K as the last complete window left it."""
        return WIDTHS[self._step]

    def tell(self, outcome: IterationOutcome) -> None:
        """Count one iteration.

        Raises:
            ValueError: this iteration or a later one was told before.
        """
        self._last = in_order(outcome.iteration, after=self._last)
        self._told += 1
        adapting = self._told - FIRST_ITERATIONS
        if adapting <= 0:
            return
        self._replacing += outcome.improved > 0  # u = 1
        if adapting % WINDOW:
            return
        if self._replacing == 0:
            self._step = min(len(WIDTHS) - 1, self._step + 1)
        elif self._replacing == WINDOW:
            self._step = max(0, self._step - 1)
        self._replacing = 0

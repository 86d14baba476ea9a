"""How much may be under way: children at the model, candidates at the evaluators.

Each limit is back-pressure: above it no call is asked for. A limit too low leaves the model's batch
or an evaluator empty; one too high fills the KV cache until vLLM preempts, or piles up candidates
whose verdicts come long after the calls that could have learned from them. Where the best limits
lie depends on the model, the problem and the machine, so they are followed, not set: additive
increase, multiplicative decrease, which settles near the largest load that does not congest (Chiu
and Jain, Computer Networks and ISDN Systems 17, 1989).

Covers: both limits and the rules by which they move. Does not cover measuring the load, or what is
asked for (``engine.loop``).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.settings import PipelineSettings

CANDIDATES_PER_WORKER = 8
FEWEST_CANDIDATES = 64
"""The most candidates, where the settings name no number, are the larger of these."""
FULL = 0.9
"""Share of the KV cache, or of the machine's memory, above which a limit is lowered."""
DECREASE = 0.75
"""What a limit is multiplied with when there is too much."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What is under way and what is scarce, at one moment.

    Attributes:
        children: at the model.
        waiting: those of them that vLLM has no room for.
        kv_usage: share of the KV cache's blocks that running requests hold, from 0 to 1.
        candidates: at the evaluators.
        memory_usage: share of the machine's memory that is not available, from 0 to 1.
    """

    children: int
    waiting: int
    kv_usage: float
    candidates: int
    memory_usage: float


class Limits:
    """The two limits, as the load so far has moved them."""

    def __init__(self, *, settings: PipelineSettings, most_children: int, workers: int) -> None:
        """Start at the bounds.

        Args:
            settings: the run's.
            most_children: that the engine runs at once.
            workers: evaluators.
        """
        self._workers = workers
        self._adaptive = settings.adaptive
        self._most_children = float(settings.children or most_children)
        usual = max(FEWEST_CANDIDATES, CANDIDATES_PER_WORKER * workers)
        self._most_candidates = float(settings.candidates or usual)
        self._children = self._most_children
        self._candidates = self._most_candidates

    @property
    def children(self) -> int:
        """The most children at the model; a single call may exceed it."""
        return int(self._children)

    @property
    def candidates(self) -> int:
        """Candidates at the evaluators at which no further call is asked for."""
        return int(self._candidates)

    def observe(self, load: Load) -> None:
        """Move the limits by what is under way now; call it in regular intervals.

        The limit on children falls while vLLM has requests waiting or its KV cache is full, to a
        share of what is there, and rises by one otherwise. The limit on candidates falls while the
        machine's memory is full, or the evaluators have more than twice the work that keeps all of
        them busy until the next interval's verdicts; it rises by one for each evaluator when they
        have less than two each.
        """
        if not self._adaptive:
            return
        if load.waiting or load.kv_usage > FULL:
            self._children = max(1.0, min(self._children, DECREASE * load.children))
        else:
            self._children = min(self._most_children, self._children + 1)
        if load.memory_usage > FULL or load.candidates > 4 * self._workers:
            lowest = float(min(2 * self._workers, self._most_candidates))
            self._candidates = max(lowest, DECREASE * self._candidates)
        elif load.candidates < 2 * self._workers:
            self._candidates = min(self._most_candidates, self._candidates + self._workers)

"""How much may be under way: children at the model, candidates at the evaluators.

Each limit is back-pressure: above it no call is asked for. A limit too low leaves the model's batch
or an evaluator empty; one too high fills the KV cache until vLLM preempts, or piles up candidates
whose verdicts come long after the calls that could have learned from them. Where the best limits
lie depends on the model, the problem and the machine, so they are followed, not set.

**Children**: additive increase, multiplicative decrease, which settles near the largest load that
does not congest (Chiu and Jain, Computer Networks and ISDN Systems 17, 1989).

**Candidates**: as many as keep the evaluators busy for the time that `BACKLOG` calls take. A call
that is asked for now brings its candidates that much later, so with less the evaluators may run
dry, and more of them would only be older when they are evaluated. With n verdicts in b seconds in
which no evaluator was idle, and calls that took c seconds, that are BACKLOG c n / b of them
(Little's law). What the machine's memory allows bounds them besides, in the way of the children.

Covers: both limits and the rules by which they move. Does not cover measuring the load, or what is
asked for (``engine.loop``).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.settings import PipelineSettings

CANDIDATES_PER_WORKER = 8
FEWEST_CANDIDATES = 64
"""The most candidates, where the settings name no number, are the larger of these."""
BACKLOG = 2.0
"""For how many calls' time the candidates at the evaluators are to last."""
FULL = 0.9
"""Share of the KV cache, or of the machine's memory, above which a limit is lowered."""
DECREASE = 0.75
"""What a limit is multiplied with when there is too much."""
MEMORY = 0.9
"""What is left of a measured number after the next one: about ten of them count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What is under way and what is scarce, at one moment, and what was done since the last one.

    Attributes:
        seconds: since the last moment.
        children: at the model.
        waiting: those of them that vLLM has no room for.
        kv_usage: share of the KV cache's blocks that running requests hold, from 0 to 1.
        candidates: at the evaluators.
        verdicts: that came in since the last moment.
        call_seconds: how long the last call took, from its sending to its last child; None before
            the first one.
        memory_usage: share of the machine's memory that is not available, from 0 to 1.
    """

    seconds: float
    children: int
    waiting: int
    kv_usage: float
    candidates: int
    verdicts: int
    call_seconds: float | None
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
        self._bound = self._most_candidates  # what the memory allows
        self._was_busy = False  # whether no evaluator was idle when the load was observed last
        self._busy_seconds = 0.0  # b
        self._verdicts = 0.0  # n
        self._call_seconds: float | None = None  # c

    @property
    def children(self) -> int:
        """The most children at the model; a single call may exceed it."""
        return int(self._children)

    @property
    def candidates(self) -> int:
        """Candidates at the evaluators at which no further call is asked for."""
        if self._call_seconds is None or not self._busy_seconds:
            return int(self._bound)
        wanted = BACKLOG * self._call_seconds * self._verdicts / self._busy_seconds
        least = min(2.0 * self._workers, self._bound)
        return int(max(least, min(self._bound, wanted)))

    def observe(self, load: Load) -> None:
        """Move the limits by what is under way now; call it in regular intervals.

        The limit on children falls while vLLM has requests waiting or its KV cache is full, to a
        share of what is there, and rises by one otherwise. With no child there, what vLLM said last
        is over. The limit on candidates follows what the
        evaluators get done while all of them are busy; its bound falls while the machine's memory
        is full, and rises by one for each evaluator otherwise. It never is less than two for each.
        """
        if not self._adaptive:
            return
        if load.children and (load.waiting or load.kv_usage > FULL):
            self._children = max(1.0, min(self._children, DECREASE * load.children))
        else:
            self._children = min(self._most_children, self._children + 1)
        if load.memory_usage > FULL:
            least = min(2.0 * self._workers, self._most_candidates)
            self._bound = max(least, DECREASE * self._bound)
        else:
            self._bound = min(self._most_candidates, self._bound + self._workers)
        self._measure(load)

    def _measure(self, load: Load) -> None:
        is_busy = load.candidates >= self._workers
        if is_busy and self._was_busy:
            self._busy_seconds = MEMORY * self._busy_seconds + load.seconds
            self._verdicts = MEMORY * self._verdicts + load.verdicts
        self._was_busy = is_busy
        if load.call_seconds is not None:
            before = load.call_seconds if self._call_seconds is None else self._call_seconds
            self._call_seconds = MEMORY * before + (1 - MEMORY) * load.call_seconds

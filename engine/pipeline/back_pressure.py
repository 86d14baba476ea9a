"""How much may be under way: children at the model, candidates at the evaluators.

Each limit is back-pressure: above it no call is asked for. A limit that is too low leaves the
model's batch or an evaluator empty. One that is too high fills the KV cache until vLLM preempts, or
piles up candidates whose verdicts come too late for the calls that could learn from them. The best
limits depend on the model, the problem and the machine, so both adapt to the load.

**Children**: additive increase, multiplicative decrease, which settles near the largest load that
does not congest (Chiu and Jain, Computer Networks and ISDN Systems 17, 1989). A new call's children
also wait while the first of them computes a prompt that is longer than a step's budget of tokens.
That takes one look or two and is no congestion, so only what waits for longer counts.

**Candidates**: as many as keep the evaluators busy for the time that `BACKLOG` calls take. A call
that is asked for now brings its candidates about one call's time later. With fewer candidates the
evaluators may run dry; more of them would only wait longer. If n verdicts came in b seconds in
which no evaluator was idle, and a call took c seconds, the limit is BACKLOG c n / b (Little's law).
The machine's memory bounds it too, by additive increase and multiplicative decrease.

Covers: both limits and the rules by which they move. Does not cover what is asked for
(``engine.loop``).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.inference import EngineLoad
from engine.memory import available_bytes, total_bytes
from engine.pipeline.requests import Requests
from engine.settings import PipelineSettings
from engine.store import RunHistory

CANDIDATES_PER_WORKER = 8
FEWEST_CANDIDATES = 64
"""Where the settings name no number, the most candidates are the larger of these two: so many for
each evaluator, or so many in all."""
BACKLOG = 2.0
"""For how many calls' time the candidates at the evaluators are to last."""
FULL = 0.9
"""Share of the KV cache, or of the machine's memory, above which a limit is lowered."""
DECREASE = 0.75
"""What a limit is multiplied with when there is too much."""
PATIENCE = 3
"""Looks in a row at which requests wait before there are too many children."""
MEMORY = 0.9
"""What is left of a measured number after the next one: about ten of them count."""
_BETWEEN_LOADS = 0.25  # seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """The load at one moment, and what was done since the load was looked at before.

    Attributes:
        seconds: since the last moment.
        children: at the model.
        waiting: those of them that vLLM has no room for.
        kv_usage: share of the KV cache's blocks that running requests hold, from 0 to 1.
        candidates: at the evaluators.
        verdicts: on children that came in since the last moment.
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


class BackPressure:
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
        self._waited = 0  # looks in a row at which requests waited
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

    def has_room(self, *, children: int, candidates: int) -> bool:
        """Whether a further call may be asked for beside what is under way."""
        return children < self.children and candidates < self.candidates

    def fits(self, k: int, *, beside: int) -> bool:
        """Whether a call of ``k`` children may be sent beside others; a first one always may."""
        return not beside or beside + k <= self.children

    def observe(self, load: Load) -> None:
        """Move the limits by what is under way now; call it in regular intervals.

        The limit on children falls to a share of what is under way while vLLM's KV cache is full or
        requests wait for `PATIENCE` looks, and rises by one otherwise. While there is no child,
        what vLLM said last is ignored. The limit on candidates follows what the evaluators get done
        while all of them are busy. Its bound falls while the machine's memory is full, rises by one
        for each evaluator otherwise, and is never below two for each evaluator.
        """
        if not self._adaptive:
            return
        self._waited = self._waited + 1 if load.waiting else 0
        if load.children and (self._waited >= PATIENCE or load.kv_usage > FULL):
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


@dataclass(kw_only=True)
class LoadWatch:
    """Lets the limits follow the load, a few times a second.

    Attributes:
        pressure: the limits.
        load: returns what the model's engine says of itself.
        requests: those at the model.
        history: the run's, as far as it is recorded; it may grow.
    """

    pressure: BackPressure
    load: Callable[[], EngineLoad]
    requests: Requests
    history: RunHistory

    def __post_init__(self) -> None:
        self._looked, self._evaluated = time.monotonic(), self.history.evaluated

    def look(self, *, candidates: int) -> None:
        """Observe the load, with so many ``candidates`` at the evaluators, if it is time."""
        now, evaluated = time.monotonic(), self.history.evaluated
        if now - self._looked < _BETWEEN_LOADS:
            return
        engine = self.load()
        self.pressure.observe(
            Load(
                seconds=now - self._looked,
                children=self.requests.children,
                waiting=engine.waiting,
                kv_usage=engine.kv_usage,
                candidates=candidates,
                verdicts=evaluated - self._evaluated,  # fills have evaluators of their own
                call_seconds=self.requests.seconds,
                memory_usage=memory_usage(),
            )
        )
        self._looked, self._evaluated = now, evaluated


def memory_usage() -> float:
    """Return the share of the memory that is not available, from 0 to 1."""
    return 1 - available_bytes() / total_bytes()

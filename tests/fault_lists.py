"""Faults that befall a run: a list that chance draws, and that a test can cut down.

A fault is armed once so many events were recorded behind the one before it, and befalls the run at
the next occasion for its kind. So what is left of a list that was cut down happens in its order,
and a fault whose occasion never comes does nothing, as those behind it.
"""

from __future__ import annotations

import enum
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace


class Kind(enum.StrEnum):
    """What may befall a run."""

    RECORD = "record"  # its process dies before an event is written
    RECORDED = "recorded"  # it dies behind one that is not committed
    OPEN = "open"  # kill -9 within a transaction that has written nothing
    WRITTEN = "written"  # kill -9 within one that has written everything
    COMMITTED = "committed"  # kill -9 behind one, before anything is handed on
    STEP = "step"  # the model's step raises
    FULL = "full"  # there is no room on the disk for another page of the log
    STOP = "stop"  # the user asks for an end
    ASKED = "asked"  # a request in the run's folder does
    BUDGET = "budget"  # the user asks for an end, and for another budget from then on
    NEVER = "never"  # a verdict does not come, and the user loses patience
    CRASH = "crash"  # an evaluation loses its evaluator
    LATE = "late"  # a verdict takes much longer than others
    ABORT = "abort"  # the engine gives a child up
    PAUSE = "pause"  # a request in the run's folder, and one to go on a little later
    HINT = "hint"  # a request that shows a text in the prompts to come
    JUMP = "jump"  # the clock leaps ahead, as that of a machine does which was suspended


KILLS = (Kind.OPEN, Kind.WRITTEN, Kind.COMMITTED)
"""A real process has to die of these."""
ENDING = (
    *(Kind.RECORD, Kind.RECORDED, *KILLS, Kind.STEP, Kind.FULL),
    *(Kind.STOP, Kind.ASKED, Kind.BUDGET, Kind.NEVER),
)
"""A session ends with these."""
PASSING = tuple(kind for kind in Kind if kind not in ENDING)
_MOST_BETWEEN = {True: 40, False: 12}  # events before a fault that ends a session, or does not
_AMOUNTS = (-4, 3, 8)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """Something that befalls a run.

    Attributes:
        kind: what.
        after: how many events are recorded before, behind the last fault.
        amount: of candidates by which the budget changes.
    """

    kind: Kind
    after: int = 0
    amount: int = 0

    def __repr__(self) -> str:
        amount = f", {self.amount:+}" if self.amount else ""
        return f"{self.kind}({self.after}{amount})"


def drawn_faults(rng: random.Random, *, of: Sequence[Kind] = tuple(Kind)) -> tuple[Fault, ...]:
    """Return a list of faults of some kinds."""
    ending, passing = ([k for k in kinds if k in of] for kinds in (ENDING, PASSING))
    kinds = [rng.choice(ending) for _ in range(rng.choice([0, 0, 1, 2, 4]))]
    kinds += [rng.choice(passing) for _ in range(rng.choice([0, 2, 4, 8]))]
    rng.shuffle(kinds)
    return tuple(
        Fault(
            kind=kind,
            after=rng.randrange(_MOST_BETWEEN[kind in ENDING]),
            amount=rng.choice(_AMOUNTS) if kind is Kind.BUDGET else 0,
        )
        for kind in kinds
    )


class Fate:
    """Says when which fault befalls a run; any thread may ask."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._left = deque(faults)
        self._events = 0
        self._lock = threading.Lock()
        self._is_open = True
        self.befallen: list[Fault] = []
        self.since = 0.0  # when the last one did, in seconds of a clock that never leaps
        self.tell: Callable[[], object] = lambda: None

    @property
    def end(self) -> Kind | None:
        """How this session ends, if it comes to that."""
        return next((each.kind for each in self._left if each.kind in ENDING), None)

    def begin_session(self) -> None:
        """Let faults befall the next session."""
        self._is_open = True

    def note_event(self) -> None:
        """Note that an event was recorded."""
        with self._lock:
            self._events += 1

    def befalls(self, kind: Kind) -> Fault | None:
        """Return the fault of this kind that befalls the run now; None if none does.

        After one that ends a session, none does until the next one begins.
        """
        with self._lock:
            if not self._left or not self._is_open:
                return None
            if self._left[0].kind is not kind or self._events < self._left[0].after:
                return None
            self.pass_over()
            self.tell()
            return self.befallen[-1]

    def pass_over(self) -> None:
        """Note that the next fault has befallen the run."""
        self._events = 0
        self.befallen.append(self._left.popleft())
        self.since = time.perf_counter()
        self._is_open = self.befallen[-1].kind not in ENDING

    def end_all(self) -> None:
        """Let nothing befall the run any more."""
        self._left.clear()

    @property
    def last(self) -> Kind | None:
        """The kind of the fault that ends the session; None as long as none does."""
        return None if self._is_open else self.befallen[-1].kind


def cut_down(
    faults: Sequence[Fault], fails: Callable[[tuple[Fault, ...]], bool]
) -> tuple[Fault, ...]:
    """Return a list with which a run still fails, and without any one of whose faults it does not.

    Whole parts are left out first, then single faults, then their events are made fewer.

    Args:
        faults: with which it fails.
        fails: whether it does with others; the last list for which it did is returned.
    """
    left, part = tuple(faults), max(1, len(faults) // 2)
    while part:
        at = 0
        while at < len(left):
            shorter = left[:at] + left[at + part :]
            if fails(shorter):
                left = shorter
            else:
                at += part
        part //= 2
    for at, fault in enumerate(left):
        for after in (0, fault.after // 2):
            sooner = (*left[:at], replace(fault, after=after), *left[at + 1 :])
            if after < fault.after and fails(sooner):
                left = sooner
                break
    return left

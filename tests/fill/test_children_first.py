"""What a run does for its children, it does before it does anything for fills."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hand_log import fill

from engine import config
from engine.api.run import Run
from engine.core import INITIAL, Evaluation, Fill
from engine.loop import Loop


class Flood:
    """A filler that always has one more."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._numbers = itertools.count()
        self.waiting = 0  # children that were recorded, and not sent to the evaluators
        self.turns = self.sent = 0

    def completed(self) -> Iterator[tuple[str, Evaluation]]:
        return iter(())

    def made(self) -> Iterator[Fill]:
        self.turns += 1
        self.waiting += len(self._loop.admitted)
        while True:
            yield fill(next(self._numbers), INITIAL, "mutation", "def f(x):\n    return x\n")
            self._loop.bell.set()  # something of a child has come in

    def send(self) -> None:
        self.sent += 1


def test_fills_delay_no_child(tmp_path: Path) -> None:
    settings = config.resolve(
        [
            *("problem=signal", "model=mutation", "fill=none", "islands.count=1"),
            *("budget.candidates=20", "budget.seconds=null", f"runs={tmp_path}"),
        ]
    )
    with Run.start(settings) as run, run.loop(bell=threading.Event()) as loop:
        flood: Any = Flood(loop)
        loop.filler = flood
        loop.run()
    assert run.history.evaluated >= 20
    assert flood.waiting == 0 and flood.turns == flood.sent > 0
    assert len(run.history.fills) >= flood.turns  # each turn has some

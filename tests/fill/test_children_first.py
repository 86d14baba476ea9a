"""What a run does for its children, it does before it does anything for fills."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hand_log import fill

from engine import config
from engine.api.run import Run
from engine.core import INITIAL, Evaluation, Fill
from engine.evaluation import EvaluatorsLost
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


class Lost:
    """A filler whose evaluators can't be started any more."""

    def completed(self) -> Iterator[tuple[str, Evaluation]]:
        raise EvaluatorsLost("a sandbox did not start: no memory")

    made = send = completed


def test_a_run_whose_evaluators_of_fills_are_lost_goes_on_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = config.resolve(
        [
            *("problem=signal", "model=mutation", "fill=none", "islands.count=1"),
            *("budget.candidates=20", "budget.seconds=null", f"runs={tmp_path}"),
        ]
    )
    with Run.start(settings) as run, run.loop(bell=threading.Event()) as loop:
        lost: Any = Lost()
        loop.filler = lost
        loop.run()
        assert loop.filler is None
    assert run.history.evaluated >= 20
    said = [each.message for each in caplog.records if "no longer filled" in each.message]
    assert len(said) == 1 and "no memory" in said[0]


class Starved:
    """A filler whose programs get no verdict."""

    def __init__(self, programs: Iterable[str]) -> None:
        self._fills = [fill(i, INITIAL, "mutation", each) for i, each in enumerate(programs)]

    def completed(self) -> Iterator[tuple[str, Evaluation]]:
        return iter(())

    def made(self) -> Iterator[Fill]:
        while self._fills:
            yield self._fills.pop()

    def send(self) -> None:
        pass


def test_no_child_is_lost_for_a_fill_that_nobody_has_evaluated(tmp_path: Path) -> None:
    """A run with all of its children's programs as fills is the run without these."""

    def ended(name: str, programs: Iterable[str]) -> Run:
        settings = config.resolve(
            [
                *("problem=signal", "model=mutation", "fill=none", "islands.count=1", "seed=3"),
                *("evaluation.workers=1", "pipeline.overlap=false", "budget.candidates=8"),
                *("budget.seconds=null", f"runs={tmp_path}", f"name={name}"),
            ]
        )
        with Run.start(settings) as run, run.loop(bell=threading.Event()) as loop:
            filler: Any = Starved(programs)
            loop.filler = filler
            loop.run()
        return run

    def judged(run: Run) -> dict[str, tuple[str, float | None]]:
        history = run.history
        return {
            each: (history.program_of(each), verdict.score)
            for each, verdict in history.verdicts.items()
        }

    alone = ended("alone", ())
    texts = [each.program.text for each in alone.history.children.values() if each.program]
    filled = ended("filled", dict.fromkeys(texts))
    assert len(filled.history.fills) >= 8
    assert judged(filled) == judged(alone)
    assert filled.history.refusals == alone.history.refusals

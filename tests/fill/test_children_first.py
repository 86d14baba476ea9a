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
from engine.core import INITIAL, Evaluation, Failure, Fill
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
    """A filler whose programs get no verdict, or one that says nothing of them."""

    def __init__(self, programs: Iterable[str], verdict: Evaluation | None) -> None:
        self._fills = [fill(i, INITIAL, "mutation", each) for i, each in enumerate(programs)]
        self._verdict = verdict
        self._made: list[str] = []

    def completed(self) -> Iterator[tuple[str, Evaluation]]:
        while self._verdict is not None and self._made:
            yield self._made.pop(), self._verdict

    def made(self) -> Iterator[Fill]:
        while self._fills:
            self._made.append(self._fills[-1].id)
            yield self._fills.pop()

    def send(self) -> None:
        pass


@pytest.mark.parametrize("failure", [None, Failure.STARVED])
def test_no_child_is_lost_for_a_fill_that_nobody_has_evaluated(
    tmp_path: Path, failure: Failure | None
) -> None:
    """A run with all of its children's programs as fills is the run without these."""
    verdict = failure and Evaluation(score=None, failure=failure, message="no idle core")

    def ended(name: str, programs: Iterable[str]) -> Run:
        settings = config.resolve(
            [
                *("problem=signal", "model=mutation", "fill=none", "islands.count=1", "seed=3"),
                *("evaluation.workers=1", "pipeline.overlap=false", "budget.candidates=8"),
                *("budget.seconds=null", f"runs={tmp_path}", f"name={name}"),
            ]
        )
        with Run.start(settings) as run, run.loop(bell=threading.Event()) as loop:
            filler: Any = Starved(programs, verdict)
            loop.filler = filler
            loop.run()
        return run

    def judged(run: Run) -> dict[str, tuple[str, float | None]]:
        history = run.history
        return {
            each: (history.program_of(each), verdict.score)
            for each, verdict in history.verdicts.items()
            if each not in history.fills
        }

    alone = ended("alone", ())
    texts = [each.program.text for each in alone.history.children.values() if each.program]
    filled = ended("filled", dict.fromkeys(texts))
    fills = filled.history.fills
    assert len(fills) >= 8
    assert len(fills.keys() & filled.history.verdicts.keys()) == (len(fills) if verdict else 0)
    assert judged(filled) == judged(alone)
    assert filled.history.refusals == alone.history.refusals

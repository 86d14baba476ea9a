"""A problem whose programs fill evaluators soon, and a run's part that has them filled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from states import state_of
from verdicts import evaluate

from engine import config
from engine.core import (
    INITIAL,
    ArraySpec,
    Case,
    Event,
    Fill,
    Improvement,
    Outputs,
    Problem,
    Program,
    Session,
    Verdict,
)
from engine.evaluation import EvaluatorPool
from engine.fill import Filler, IdleEvaluators
from engine.fill.solutions import Solutions
from engine.settings import FillSettings
from engine.store import Recorded

START = '''import numpy as np


def run():
    """Three numbers, all 1.5 from what is wanted."""
    return improve(np.array([1.5, 0.5, 4.5]), effort=1, seed=0)


def improve(numbers, effort, seed):
    rng = np.random.default_rng(seed)
    for _ in range(effort):
        trial = numbers + 0.3 * rng.standard_normal(3)
        if error(trial) < error(numbers):
            numbers = trial
    return numbers


def perturb(numbers, intensity, seed):
    rng = np.random.default_rng(seed)
    return (numbers + 0.1 * intensity * rng.standard_normal(3),)


def error(numbers):
    return np.abs(numbers - np.array([3.0, 2.0, 6.0])).sum()
'''
WANTED = np.array([3.0, 2.0, 6.0])


def cases() -> Sequence[Case]:
    return [Case(name="numbers", args=(), outputs={"numbers": ArraySpec(shape=(3,))})]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    return {"score": -float(np.abs(outputs[0]["numbers"] - WANTED).sum())}


def problem() -> Problem:
    """Return the problem: three numbers, minus their distance from what is wanted."""
    made = Problem.of(
        "numbers",
        cases=cases,
        score=score,
        initial_program=START,
        entry_point="run",
        seconds=60,  # a loaded machine is no failure
    )
    return replace(made, improvement=Improvement(solution=("numbers",), effort=20))


def settings(*makers: str, **more: object) -> FillSettings:
    """Return the settings of a run that those makers fill."""
    arguments = [f"{key}={value}" for key, value in more.items()]
    resolved = config.resolve(["fill=default", f"fill.makers=[{','.join(makers)}]", *arguments])
    return resolved.fill


class Filling:
    """A run without a model: its state, and what fills its evaluators.

    Attributes:
        events: as they were recorded.
        state: that they add up to.
        filler: makes more.
    """

    def __init__(
        self,
        evaluators: IdleEvaluators,
        given: FillSettings,
        *,
        events: Sequence[Event] = (),
        fits: Callable[[Program], bool] = lambda program: True,
        start: str = START,
        seed: int = 1,
        syntax: Executor | None = None,
    ) -> None:
        """Begin, or go on behind events."""
        run = config.resolve(["islands.count=2"])
        self.events: list[Event] = []
        self._pool = evaluators.pool
        self._problem = problem()
        self.state = state_of(run, seed=seed)
        for event in events or self._beginning(evaluators.pool, start):
            self.record(event)
        self._syntax = syntax or evaluators.syntax
        self.filler = Filler(
            settings=given,
            state=self.state,
            problem=self._problem,
            evaluators=replace(evaluators, syntax=self._syntax),
            fits=fits,
            seed=seed,
        )

    def _beginning(self, pool: EvaluatorPool, start: str) -> list[Event]:
        first = Verdict(candidate=INITIAL, evaluation=evaluate(pool, start), program=start)
        return [Session(number=0, engine="0", fingerprint="f"), first]

    @property
    def fills(self) -> list[Fill]:
        """Those that were recorded."""
        return [*self.state.history.fills.values()]

    @property
    def judged(self) -> int:
        """Fills with a verdict."""
        return sum(each.judged for each in self.state.history.filled.values())

    def record(self, event: Event) -> None:
        self.events.append(event)
        self.state.fold(Recorded(session=0, elapsed=0.0, event=event))

    def turn(self) -> None:
        """Do what the loop does with a filler in a turn."""
        for name, evaluation in self.filler.completed():
            self.record(Verdict(candidate=name, evaluation=evaluation))
        for fill in self.filler.made():
            self.record(fill)
        self.filler.send()

    def until(self, judged: int) -> None:
        """Take turns until so many fills are judged."""
        self.turns_until(lambda: self.judged >= judged)

    def until_out(self) -> set[str]:
        """Take turns until fills are recorded that have no verdict; return them."""

        def out() -> set[str]:
            return {each.id for each in self.fills} - set(self.state.history.verdicts)

        self.turns_until(lambda: bool(out()))
        return out()

    def until_quiet(self) -> None:
        """Take turns until nothing is made any more, and nothing is out."""
        quiet = 0

        def is_quiet() -> bool:
            nonlocal quiet
            self._syntax.submit(int).result(120)  # behind all that is to be made
            is_out = self._pool.in_flight or self.judged < len(self.fills)
            quiet = 0 if is_out else quiet + 1
            return quiet == 100

        self.turns_until(is_quiet)

    def turns_until(self, holds: Callable[[], bool]) -> None:
        """Take turns until a condition holds."""
        deadline = time.monotonic() + 120
        while not holds():
            assert time.monotonic() < deadline, "the evaluators have stopped"
            self.turn()
            time.sleep(0.002)


@contextmanager
def open_evaluators(workers: int = 1) -> Iterator[IdleEvaluators]:
    """Start evaluators that give way to nobody: other tests may leave no core idle."""
    watched = problem()
    assert watched.improvement is not None
    solutions = Solutions(watched.improvement, most=1024)
    with EvaluatorPool(problem=solutions.watched(watched), workers=workers) as pool:
        yield IdleEvaluators(
            pool=pool, workers=workers, syntax=ThreadPoolExecutor(1), solutions=solutions
        )


def drain(evaluators: IdleEvaluators) -> None:
    """Wait for what is out and forget it, as if its process had died."""
    while evaluators.pool.in_flight:
        evaluators.pool.completed(timeout=1.0)

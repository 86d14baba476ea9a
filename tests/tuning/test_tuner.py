"""The tuner: it finds the minimum of plain functions of a program's constants."""

import math
import random
import re

import pytest

from engine.core import Direction
from engine.tuning import Tuner, constants_of

PROGRAM = "def f():\n    return 1.0 * 10 + 0.0\n"


def loss_of(program: str) -> float:
    """Best at 2.5, 17 and -0.4: the score of a program of `PROGRAM`'s form."""
    a, b, c = (each.value for each in constants_of(program))
    return (a - 2.5) ** 2 + (b - 17) ** 2 / 10 + (c + 0.4) ** 2


def tuned(direction: Direction, *, answers: int, seed: int = 0) -> list[tuple[float, str]]:
    tuner = Tuner(PROGRAM, direction=direction, seed=seed)
    found = []
    while len(found) < answers and (sample := tuner.ask()) is not None:
        loss = loss_of(sample.program)
        found.append((loss, sample.program))
        tuner.tell(sample.number, direction.key(loss))
    return found


@pytest.mark.parametrize("direction", [*Direction])
def test_it_finds_floats_whole_numbers_and_signs(direction: Direction) -> None:
    loss, program = min(tuned(direction, answers=600))
    assert loss < 1e-3
    assert constants_of(program)[1].value == 17
    assert re.search(r"\+ \(?-0\.\d+\)?\n", program)


def test_the_order_of_the_answers_changes_nothing() -> None:
    in_order, mixed = (Tuner(PROGRAM, direction=Direction.MINIMISE, seed=5) for _ in range(2))
    draw = random.Random(1)
    for _ in range(5):
        first, second = [], []
        while (sample := in_order.ask()) is not None:
            first.append(sample)
        while (sample := mixed.ask()) is not None:
            second.append(sample)
        assert first == second and first
        for sample in first:
            in_order.tell(sample.number, loss_of(sample.program))
        for sample in draw.sample(second, len(second)):
            mixed.tell(sample.number, loss_of(sample.program))


def test_it_goes_on_where_programs_fail() -> None:
    tuner = Tuner(PROGRAM, direction=Direction.MINIMISE, seed=0)
    best = float("inf")
    for _ in range(600):
        if (sample := tuner.ask()) is None:
            break
        loss = loss_of(sample.program)
        failed = "-" in sample.program and loss > 5
        best = best if failed else min(best, loss)
        tuner.tell(sample.number, None if failed else loss)
    assert best < 1e-3


PINNED = "def f():\n    return 2.0 * 1.0 + zeros(12) @ ones(12)\n"
"""The last two have to be equal, and a tolerance pins the first one."""


def test_numbers_that_may_not_be_moved_by_themselves_stay_and_others_are_tuned() -> None:
    tuner = Tuner(PINNED, direction=Direction.MINIMISE, seed=0)
    found = []
    while len(found) < 400 and (sample := tuner.ask()) is not None:
        two, one, *sizes = (each.value for each in constants_of(sample.program))
        fits = abs(two - 2) < 1e-6 and sizes == [12, 12]
        found.append(abs(one - 1.7) if fits else math.inf)
        tuner.tell(sample.number, found[-1] if fits else None)
    assert min(found) < 1e-3
    assert found.count(math.inf) < 20  # one generation, and a probe of each that is pinned


def test_it_is_over_where_nothing_may_be_moved() -> None:
    tuner = Tuner(PINNED, direction=Direction.MINIMISE, seed=0)
    asked = 0
    while (sample := tuner.ask()) is not None:
        asked += 1
        tuner.tell(sample.number, None)
    assert tuner.is_over and asked < 20


def test_it_converges() -> None:
    found = tuned(Direction.MINIMISE, answers=20_000)
    assert len(found) < 20_000


@pytest.mark.parametrize("number", ["1000000000000", "-1e308", "5e-324"])
def test_numbers_of_any_size_are_moved_and_stay_finite(number: str) -> None:
    tuner = Tuner(f"x = {number} + 1.5\n", direction=Direction.MINIMISE, seed=0)
    seen = set()
    for _ in range(60):
        sample = tuner.ask()
        assert sample is not None
        first, second = map(float, re.findall(r"-?[\d.]+(?:e[+-]?\d+)?", sample.program))
        assert math.isfinite(first) and "inf" not in sample.program
        seen.add(first)
        tuner.tell(sample.number, abs(second - 2.0))
    assert len(seen) > 10


def test_numbers_that_can_not_be_moved_stay_as_they_are() -> None:
    program = "x = 6364136223846793005 + 1e999 + 1.5\n"
    tuner = Tuner(program, direction=Direction.MINIMISE, seed=0)
    sample = tuner.ask()
    assert sample is not None
    assert sample.program.startswith("x = 6364136223846793005 + 1e999 + ")
    assert sample.program != program
    with pytest.raises(ValueError, match="no constant"):
        Tuner("x = 6364136223846793005\n", direction=Direction.MINIMISE, seed=0)


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match="no constant"):
        Tuner("def f(x):\n    return x\n", direction=Direction.MINIMISE, seed=0)
    tuner = Tuner(PROGRAM, direction=Direction.MINIMISE, seed=0)
    with pytest.raises(ValueError, match="no sample 0"):
        tuner.tell(0, 1.0)
    sample = tuner.ask()
    assert sample is not None
    tuner.tell(sample.number, 1.0)
    with pytest.raises(ValueError, match="no sample 0"):
        tuner.tell(sample.number, 1.0)

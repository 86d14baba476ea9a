"""Tunings as fills: which program has its turn, and that a run goes on with the same samples."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from filling import START, Filling, drain, settings
from verdicts import evaluate

from engine.core import (
    INITIAL,
    Direction,
    Event,
    Fill,
    Verdict,
)
from engine.fill import IdleEvaluators
from engine.fill.tunings import Tuning
from engine.syntax import read
from engine.tuning import Tuner


@pytest.mark.parametrize(("seconds", "gives_way"), [(0.0, True), (1e9, False)])
def test_a_tuning_that_had_its_turn_gives_way_to_a_better_program(
    evaluators: IdleEvaluators, monkeypatch: pytest.MonkeyPatch, seconds: float, gives_way: bool
) -> None:
    monkeypatch.setattr("engine.fill.tunings.TURN_SECONDS", seconds)
    run = Filling(evaluators, settings("tuning"))
    run.until(judged=20)
    text = START.replace("[1.5, 0.5, 4.5]", "[3.0, 2.0, 5.9]")
    program = read(text)
    assert program is not None and {each.parent for each in run.fills} == {INITIAL}
    better = Fill(
        number=10_000,
        maker="mutation",
        parent=INITIAL,
        island=0,
        sample=0,
        program=program,
        joins=True,
    )
    drain(evaluators)
    verdict = Verdict(candidate=better.id, evaluation=evaluate(evaluators.pool, text))
    events = [*run.events, better, verdict]
    after = Filling(evaluators, settings("tuning"), events=events)
    after.until(judged=after.judged + 80)
    parents = {each.parent for each in after.fills if each.maker == "tuning"}
    assert parents == ({INITIAL, better.id} if gives_way else {INITIAL})


def test_a_program_whose_numbers_are_too_large_is_not_tuned(evaluators: IdleEvaluators) -> None:
    """And one that an earlier version began to tune is left alone."""
    large = """import numpy as np


def run():
    state = 6364136223846793005 % 1000000000000000000
    return np.array([x for x in "123"], dtype=float) + (state > state)
"""
    run = Filling(evaluators, settings("tuning"), start=large)
    run.until_quiet()
    assert not run.fills
    program = read(large)
    assert program is not None
    fill = Fill(
        number=0,
        maker="tuning",
        parent=INITIAL,
        island=0,
        sample=0,
        program=replace(program, text=large.replace("= 6364", "= 6365"), key="another"),
        joins=True,
    )
    after = Filling(evaluators, settings("tuning"), events=[*run.events, fill])
    after.until_quiet()
    assert after.judged == len(after.fills) == 1


COARSE = """import numpy as np


def run():
    return np.array([1, 1, 1], dtype=float)
"""


def test_a_tuning_goes_on_behind_samples_that_were_copies(evaluators: IdleEvaluators) -> None:
    """Whole numbers: many a sample is a program that is known, which is never recorded."""
    given = settings("tuning", "mutation")
    before = Filling(evaluators, given, start=COARSE)

    def some_came_to_nothing() -> bool:
        samples: dict[str, list[int]] = {}
        for each in before.fills:
            if each.maker == "tuning":
                samples.setdefault(each.parent, []).append(each.sample)
        return any(len(numbers) <= max(numbers) for numbers in samples.values())

    before.until(judged=60)
    before.turns_until(some_came_to_nothing)
    for share in (0.3, 0.6, 1.0):
        drain(evaluators)
        events = before.events[: int(share * len(before.events))]
        after = Filling(evaluators, given, events=events)
        after.until(judged=after.judged + 25)
        subjects = Counter((each.KIND, each.subject) for each in after.events)
        assert max(subjects.values()) == 1


def test_a_tuning_is_told_what_programs_score_that_something_else_made(
    evaluators: IdleEvaluators,
) -> None:
    """So it asks for the same samples as one that has them evaluated, also when it goes on."""
    alone = Filling(evaluators, settings("tuning"))
    alone.until(judged=100)
    drain(evaluators)
    asked = {each.sample: each.program.text for each in alone.fills}
    events = alone.events[:2]
    others = [each for each in alone.fills[:20:2] if each.id in alone.state.history.verdicts]
    for number, each in enumerate(others):
        fill = replace(each, number=number, maker="mutation", sample=number, joins=False)
        events.append(fill)
        if number != 1:  # whose verdict is out
            verdict = alone.state.history.verdicts[each.id]
            events.append(replace(verdict, candidate=fill.id))

    def of_tunings(run: Filling) -> dict[int, str]:
        return {each.sample: each.program.text for each in run.fills if each.maker == "tuning"}

    def going_on(events: Sequence[Event]) -> Filling:
        run = Filling(evaluators, settings("tuning", "mutation"), events=events)
        enough = len(of_tunings(run)) + 20
        run.turns_until(lambda: len(of_tunings(run)) >= enough)
        drain(evaluators)
        return run

    for _ in range(3):
        run = going_on(events)
        found = of_tunings(run)
        assert len(found.keys() & asked.keys()) >= 20
        assert not found.keys() & {each.sample for each in others}
        assert all(asked.get(sample, text) == text for sample, text in found.items())
        events = run.events[:-10]  # the last ones were not on disk


def test_a_tuning_whose_samples_another_version_drew_is_given_up(
    evaluators: IdleEvaluators,
) -> None:
    before = Filling(evaluators, settings("tuning"))
    before.until(judged=20)
    drain(evaluators)
    number, first = next((i, e) for i, e in enumerate(before.events) if isinstance(e, Fill))
    assert first.sample == 0
    other = replace(first, program=read(first.program.text.replace("return", "return ")))
    events = [*before.events[:number], other, *before.events[number + 1 :]]
    after = Filling(evaluators, settings("tuning"), events=events)
    after.until(judged=len(before.fills))  # those that were out are judged, and count
    after.turn()
    assert len(after.fills) == len(before.fills)
    assert {each.parent for each in after.fills} == {INITIAL}


def test_a_tuning_is_not_driven_away_from_a_program_that_its_samples_repeat() -> None:
    """Of one whole number most samples are the number itself."""
    program = "def run():\n    return 2\n"
    for seed in range(4):
        tuner = Tuner(program, direction=Direction.MAXIMISE, seed=seed)
        tuning = Tuning(
            parent=INITIAL,
            island=0,
            score=2.0,
            direction=Direction.MAXIMISE,
            tuner=tuner,
            answers=100,
        )
        found = [2.0]
        while not tuning.is_over:
            sample = tuning.next()
            if sample is None:
                break
            assert sample.program != program
            found.append(float(sample.program.split()[-1].strip("()")))
            tuning.tell(sample.number, found[-1])
        assert max(found) > 20


GENERATION = 6
"""Samples of a generation of CMA-ES, for the two numbers of the program below."""


@pytest.mark.parametrize("copies", [0, 4, 2])
def test_a_tuning_is_the_same_in_whatever_order_its_answers_come(copies: int) -> None:
    """Killed anywhere, with any of its samples out, a tuning asks for the same programs again.

    One in so many repeats what something else made: it is not recorded, and its verdict may be out.
    """
    program = "def run():\n    return 3 + 1.5\n"

    def tuning() -> Tuning:
        tuner = Tuner(program, direction=Direction.MAXIMISE, seed=5)
        return Tuning(
            parent=INITIAL,
            island=0,
            score=score(program),
            direction=Direction.MAXIMISE,
            tuner=tuner,
            answers=60,
        )

    def score(text: str) -> float | None:
        return None if len(text) % 5 == 0 else -float(len(text)) + text.count("1")

    def is_copy(text: str) -> bool:
        return copies > 0 and zlib.crc32(text.encode()) % copies == 0

    def shuffled(seed: int) -> list[tuple[int, str]]:
        rng, asked, one = np.random.default_rng(seed), list[tuple[int, str]](), tuning()
        out: dict[int, str] = {}
        while not one.is_over:
            sample = one.next() if rng.random() < 0.7 or not out else None
            if sample is not None:
                asked.append((sample.number, sample.program))
                out[sample.number] = sample.program
            elif out:
                number = [*out][int(rng.integers(len(out)))]
                one.tell(number, score(out.pop(number)))
        return asked

    whole = shuffled(0)
    assert len(whole) > 20
    for seed in range(1, 6):
        assert shuffled(seed) == whole
    for cut in range(1, len(whole), 3):
        asked = dict(whole[:cut])
        generation = max(asked) // GENERATION  # of earlier ones all was known
        out = [each for each in asked if each // GENERATION == generation and each % 3 == 0]
        recorded = {each: text for each, text in asked.items() if not is_copy(text)}
        if not recorded:
            continue
        awaited = frozenset(asked[each] for each in out)

        def score_of(text: str, *, awaited: frozenset[str] = awaited) -> float | None:
            if text in awaited:
                raise KeyError(text)
            return score(text) if is_copy(text) else None

        again = tuning()
        known = {number: score(text) for number, text in recorded.items() if number not in out}
        assert again.catch_up(known, recorded=recorded, score_of=score_of)
        for number in recorded.keys() & out:
            again.tell(number, score(asked[number]))
        rest = []
        while not again.is_over:
            sample = again.next()
            assert sample is not None
            rest.append((sample.number, sample.program))
            again.tell(sample.number, score(sample.program))
        copies_out = [each for each in whole[:cut] if is_copy(each[1]) and each[0] in out]
        later = [each for each in whole[:cut] if each[0] > max(recorded) and each[0] not in out]
        assert rest == sorted(copies_out + later) + whole[cut:]

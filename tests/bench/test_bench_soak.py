from __future__ import annotations

import gc
import itertools
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from bench import bare
from bench.hostile import HONEST, HOSTILE
from bench.machine import Held, Resources, leaks, look, strays
from bench.soak import Given, draw, prepare, valid_programs
from engine.core import Evaluation, Failure
from engine.problem import load_problem, shipped

ZYGOTE = Held(resident=100 << 20, descriptors=5, command=b"zygote")
HELD = Resources(
    own=Held(resident=200 << 20, descriptors=9, command=b"main"),
    processes={10: ZYGOTE, 11: ZYGOTE},
    files=frozenset({"a"}),
)


def test_a_valid_program_needs_its_exact_score() -> None:
    given = Given(name="valid", program="", proper=frozenset({None}), score=0.5)
    assert given.accepts(Evaluation(score=0.5, failure=None))
    assert not given.accepts(Evaluation(score=0.5 + 1e-16 * 2, failure=None))
    assert not given.accepts(Evaluation(score=None, failure=Failure.TIMEOUT))


def test_a_hostile_program_needs_a_proper_failure() -> None:
    given = Given(name="bad", program="", proper=frozenset({Failure.ERROR}), score=0.5)
    assert given.accepts(Evaluation(score=None, failure=Failure.ERROR))
    assert not given.accepts(Evaluation(score=None, failure=Failure.CRASH))
    assert not given.accepts(Evaluation(score=0.5, failure=None))


def test_the_share_of_hostile_programs_holds_in_every_hundred() -> None:
    good = [Given(name="valid", program="", proper=frozenset({None}), score=0.5)]
    bad = [replace(good[0], name="bad")]
    drawn = [each.name for each in itertools.islice(draw(good, bad, share=0.1, seed=0), 1000)]
    assert [drawn[i : i + 100].count("bad") for i in range(0, 1000, 100)] == [10] * 10


def test_valid_programs_are_valid_and_differ() -> None:
    problem = load_problem(shipped()["signal"])
    programs = valid_programs(8, seed=0)
    scores = [bare.evaluate(problem, program) for program in programs]
    assert len(set(scores)) == len(programs)
    assert all(0 < score < 1 for score in scores)
    assert programs == valid_programs(8, seed=0)


def test_the_honest_filter_is_valid() -> None:
    assert 0 < bare.evaluate(load_problem(shipped()["signal"]), HONEST) < 1


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda each: each.name)
def test_hostile_programs_are_programs(hostile: object) -> None:
    compile(hostile.program("/nowhere"), "<program>", "exec")  # type: ignore[attr-defined]
    assert hostile.proper  # type: ignore[attr-defined]


def test_the_copied_problem_has_the_limit(tmp_path: Path) -> None:
    problem = load_problem(prepare(tmp_path, limit=0.3))
    assert problem.limits.seconds == 0.3


def test_nothing_more_is_no_leak() -> None:
    assert leaks(HELD, replace(HELD, processes={10: ZYGOTE})) == []
    assert leaks(HELD, HELD) == []


@pytest.mark.parametrize(
    ("after", "named"),
    [
        (replace(HELD, files=frozenset({"a", "b"})), "file b is new"),
        (replace(HELD, processes={10: ZYGOTE, 11: ZYGOTE, 12: ZYGOTE}), "2 processes became 3"),
        (replace(HELD, own=replace(HELD.own, descriptors=10)), "9 open descriptors became 10"),
        (replace(HELD, own=replace(HELD.own, resident=203 << 20)), "this process grew"),
        (
            replace(HELD, processes={10: ZYGOTE, 11: replace(ZYGOTE, resident=102 << 20)}),
            "process 11 grew",
        ),
        (
            replace(HELD, processes={10: ZYGOTE, 99: replace(ZYGOTE, descriptors=6)}),
            "process 99: 5 descriptors became 6",
        ),
    ],
)
def test_more_of_anything_is_a_leak(after: Resources, named: str) -> None:
    (found,) = leaks(HELD, after)
    assert named in found


def test_this_process_is_seen(tmp_path: Path) -> None:
    gc.collect()  # what other tests left open is not to be closed in between
    before = look(tmp_path)
    (tmp_path / "new").touch()
    with (tmp_path / "new").open():
        after = look(tmp_path)
    assert after.files - before.files == {str(tmp_path / "new")}
    assert after.own.descriptors == before.own.descriptors + 1
    assert after.own.resident > 10 << 20


def test_a_child_is_below_this_process_and_no_stray() -> None:
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        now = look(Path("/nonexistent"))
        assert child in now.processes
        assert f"process {child} got away" not in strays(now)
        others = replace(now, processes={0: now.processes[child]})
        assert f"process {child} got away" in strays(others)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)

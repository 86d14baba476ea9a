"""Programs made for idle evaluators: recorded first, judged once, parents where they earn it."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from births import born
from filling import START, Filling, drain, open_evaluators, problem, settings

from engine.core import (
    INITIAL,
    Fill,
    Refusal,
    UserError,
    Verdict,
)
from engine.fill import IdleEvaluators, open_idle
from engine.syntax import read

ALL = settings("improvement", "tuning", "mutation")


def test_every_maker_has_its_turn_and_every_fill_one_verdict(evaluators: IdleEvaluators) -> None:
    run = Filling(evaluators, ALL)
    run.until(judged=60)
    assert {each.maker for each in run.fills} == {"improvement", "tuning", "mutation"}
    assert [each.number for each in run.fills] == [*range(len(run.fills))]
    subjects = Counter((each.KIND, each.subject) for each in run.events)
    assert max(subjects.values()) == 1
    assert len({each.program.key for each in run.fills}) == len(run.fills)
    known: set[str] = {INITIAL}
    for event in run.events:  # what a verdict is on was recorded before it, and its parent too
        if isinstance(event, Fill):
            assert event.parent in known
            known.add(event.id)
        elif isinstance(event, Verdict):
            assert event.candidate in known


@pytest.mark.parametrize("makers", [("mutation",), ("tuning", "mutation")])
def test_mutations_vary_the_programs_of_every_island(
    evaluators: IdleEvaluators, makers: tuple[str, ...]
) -> None:
    run = Filling(evaluators, settings(*makers))
    run.until(judged=40)
    assert {each.island for each in run.fills if each.maker == "mutation"} == {0, 1}


class Uneven(ThreadPoolExecutor):
    """Makes every third program later than those that were asked for behind it."""

    def __init__(self) -> None:
        super().__init__(8)
        self._asked = 0

    def submit(self, made: Any, /, *given: Any, **named: Any) -> Future[Any]:
        self._asked += 1
        is_late = self._asked % 3 == 0

        def late() -> Any:
            time.sleep(0.02 if is_late else 0)
            return made(*given, **named)

        return super().submit(late)


def test_fills_are_recorded_in_the_order_in_which_they_were_asked_for(
    evaluators: IdleEvaluators,
) -> None:
    """A run that goes on takes a sample that is missing before others for one without a program."""
    run = Filling(evaluators, ALL, syntax=Uneven())
    run.until(judged=60)
    samples: dict[tuple[str, str], list[int]] = {}
    for each in run.fills:
        samples.setdefault((each.maker, each.parent), []).append(each.sample)
    assert all(numbers == sorted(numbers) for numbers in samples.values())
    assert max(map(len, samples.values())) > 10


SLOW = START.replace("    return improve", "    time.sleep(50)\n    return improve")


SLOW = f"import time\n{SLOW}"


class FirstIsSlow(Executor):
    """Makes a program that sleeps of the first one that is asked for, and quick ones at once."""

    def __init__(self) -> None:
        self._asked = 0

    def submit(self, made: Any, /, *given: Any, **named: Any) -> Future[Any]:
        self._asked += 1
        result: Future[Any] = Future()
        result.set_result(read(SLOW if self._asked == 1 else f"{START}LIMIT = {self._asked}\n"))
        return result


def test_more_go_ahead_while_one_evaluator_is_at_a_slow_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one on the model's core hardly moves while the model decodes."""
    monkeypatch.setattr("engine.fill.filler._OFTEN", 60.0)  # seconds: this core may be slow
    with open_evaluators(workers=2) as evaluators:
        run = Filling(evaluators, settings("mutation"), syntax=FirstIsSlow())
        run.until_out()
        slow, most, pause = run.fills[0].id, 0, 1.0
        while slow not in run.state.history.verdicts and most <= 32:
            time.sleep(pause)  # until all the quick ones are done
            pause *= 2
            run.turn()
            most = max(most, evaluators.pool.in_flight)
        assert most > 32  # 16 for each evaluator to begin with


class Refusing(Executor):
    """Can start no process."""

    def submit(self, made: Any, /, *given: Any, **named: Any) -> Future[Any]:
        result: Future[Any] = Future()
        result.set_exception(UserError("no process can be started"))
        return result


def test_where_nothing_can_make_fills_the_run_is_told(evaluators: IdleEvaluators) -> None:
    with pytest.raises(UserError, match="no process"):
        Filling(evaluators, settings("mutation"), syntax=Refusing()).until_out()


def test_makers_have_equal_shares_of_the_evaluators_time(evaluators: IdleEvaluators) -> None:
    """One maker may have one program out at a time; the other ones' wait behind it, not before."""
    slow = START.replace("    rng =", "    time.sleep(0.2)\n    rng =", 1)
    run = Filling(evaluators, settings("improvement", "mutation"), start=f"import time\n{slow}")
    run.until(judged=60)
    verdicts = [
        each for each in run.events if isinstance(each, Verdict) and each.candidate != INITIAL
    ]
    seconds = Counter[str]()
    for each in verdicts[30:]:  # the first are mutations that were sent before a solution was known
        seconds[run.state.history.fills[each.candidate].maker] += each.evaluation.seconds or 0.0
    assert 0.5 < seconds["improvement"] / seconds["mutation"] < 2


def test_a_fill_that_beats_its_parent_and_all_before_it_becomes_a_parent(
    evaluators: IdleEvaluators,
) -> None:
    run = Filling(evaluators, settings("tuning", "mutation"))
    run.until(judged=150)
    scores = {name: each.score for name, each in run.state.history.verdicts.items()}
    bars: dict[str, float] = {}
    expected = {INITIAL}
    for event in run.events:
        fill = run.state.history.fills.get(event.subject)
        score = scores.get(event.subject)
        if isinstance(event, Verdict) and fill is not None and score is not None:
            bar = bars.get(fill.parent, scores[fill.parent])
            assert bar is not None
            if score > bar:
                bars[fill.parent] = score
                expected.add(fill.id)
    assert len(expected) > 2
    search = run.state.search
    joined = {each.id for island in range(2) for each in search.best(island, most=1000)}
    assert joined == expected


def test_a_fill_that_no_prompt_has_room_for_counts_and_becomes_no_parent(
    evaluators: IdleEvaluators,
) -> None:
    run = Filling(evaluators, settings("tuning"), fits=lambda program: False)
    run.until(judged=80)
    assert [each.id for each in run.state.search.best(0, most=9)] == [INITIAL]
    initial = run.state.history.verdicts[INITIAL].score
    best = run.state.history.best_score
    assert best is not None and initial is not None and best > initial


def test_a_run_that_goes_on_judges_what_was_out_and_doubles_nothing(
    evaluators: IdleEvaluators,
) -> None:
    before = Filling(evaluators, ALL)
    before.until(judged=40)
    out = before.until_out()
    drain(evaluators)
    after = Filling(evaluators, ALL, events=before.events)
    # Others may be judged before these, whose maker has used more time.
    after.turns_until(lambda: out <= set(after.state.history.verdicts))
    after.until(judged=before.judged + len(out) + 30)
    subjects = Counter((each.KIND, each.subject) for each in after.events)
    assert max(subjects.values()) == 1
    texts = Counter(each.program.key for each in after.fills)
    assert max(texts.values()) == 1


def test_a_child_takes_the_place_of_a_fill_whose_verdict_is_out(
    evaluators: IdleEvaluators,
) -> None:
    """Its verdict is the program's, which a tuning is told as if nothing had come between."""

    def asked(run: Filling) -> dict[int, str]:
        return {each.sample: each.program.text for each in run.fills}

    alone = Filling(evaluators, settings("tuning"))
    alone.until(judged=60)
    drain(evaluators)
    scores = {
        each.program.key: alone.state.history.verdicts[each.id]
        for each in alone.fills
        if each.id in alone.state.history.verdicts
    }
    run = Filling(evaluators, settings("tuning"))
    out = run.until_out()
    fill = next(each for each in run.fills if each.id in out)
    child, call = born(
        id="0.0", program=fill.program, iteration=0, parent=INITIAL, operator="rewrite"
    )
    run.record(call)
    search = run.state.search
    assert search.refusal(fill.program, parent=INITIAL) is None
    run.record(child)
    assert search.refusal(fill.program, parent=INITIAL) is Refusal.DUPLICATE
    before = [*run.events]
    run.until(judged=len(run.fills) - 1)
    run.turns_until(lambda: not evaluators.pool.in_flight)
    run.turn()
    assert fill.id not in run.state.history.verdicts
    run.record(replace(scores[fill.program.key], candidate=child.id))
    run.until(judged=50)
    drain(evaluators)
    # Killed with the child's verdict out, and with all verdicts that were in.
    early = Filling(evaluators, settings("tuning"), events=before)
    early.until(judged=len(early.fills) - 1)
    early.record(replace(scores[fill.program.key], candidate=child.id))
    early.until(judged=50)
    drain(evaluators)
    late = Filling(evaluators, settings("tuning"), events=run.events)
    late.until(judged=run.judged + 10)
    for each in (run, early, late):
        assert fill.id not in each.state.history.verdicts
        found = asked(each)
        assert all(
            found[sample] == text for sample, text in asked(alone).items() if sample in found
        )
        assert len(found.keys() & asked(alone).keys()) > 40


@pytest.mark.parametrize("makers", [(), ("tuning",)])
def test_where_time_may_be_the_score_nothing_fills(makers: tuple[str, ...]) -> None:
    timed = replace(problem(), isolate_cases=bool(makers))
    with open_idle(settings(*makers), timed, cores=[0], making=[0]) as opened:
        assert opened is None

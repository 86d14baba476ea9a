"""Programs made for idle evaluators: recorded first, judged once, parents where they earn it."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from births import born
from filling import START, WANTED, Filling, open_evaluators, problem, settings
from verdicts import evaluate

from engine.core import (
    INITIAL,
    Direction,
    Event,
    Fill,
    Improvement,
    Outputs,
    Refusal,
    UserError,
    Verdict,
)
from engine.fill import IdleEvaluators, open_idle
from engine.fill.improvements import Improvements
from engine.fill.mutations import mutation_of
from engine.fill.solutions import Solutions
from engine.fill.tunings import Tuning
from engine.syntax import read
from engine.tuning import Tuner

ALL = settings("improvement", "tuning", "mutation")


@pytest.fixture(scope="module")
def opened() -> Iterator[IdleEvaluators]:
    with open_evaluators() as evaluators:
        yield evaluators


@pytest.fixture
def evaluators(opened: IdleEvaluators) -> IdleEvaluators:
    drain(opened)
    return opened


def drain(evaluators: IdleEvaluators) -> None:
    """Wait for what is out and forget it, as if its process had died."""
    while evaluators.pool.in_flight:
        evaluators.pool.completed(timeout=1.0)


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


class SlowMutations(Executor):
    """Makes every mutation a program that sleeps."""

    def __init__(self) -> None:
        self._asked = 0

    def submit(self, made: Any, /, *given: Any, **named: Any) -> Future[Any]:
        self._asked += 1
        slow = START.replace("    return improve", "    time.sleep(0.2)\n    return improve")
        result: Future[Any] = Future()
        is_mutation = made.func is mutation_of
        text = f"import time\n{slow}LIMIT = {self._asked}\n"
        result.set_result(read(text) if is_mutation else made(*given, **named))
        return result


def test_slow_programs_of_one_maker_leave_room_to_the_others(evaluators: IdleEvaluators) -> None:
    run = Filling(evaluators, settings("tuning", "mutation"), syntax=SlowMutations())
    run.until(judged=100)
    filled = run.state.history.filled
    assert filled["tuning"].judged > 3 * filled["mutation"].judged


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


def test_improvements_find_a_solution_and_write_it_into_a_program(
    evaluators: IdleEvaluators,
) -> None:
    run = Filling(evaluators, settings("improvement", **{"fill.hops": 40}))
    run.until_quiet()
    assert len(run.fills) <= 40
    assert all(each.parent == INITIAL and not each.joins for each in run.fills)
    assert [each.id for each in run.state.search.best(0, most=9)] == [INITIAL]
    best = run.state.history.best
    assert best is not None and best.score is not None
    assert best.score > -0.15  # of -4.5 to begin with: each hop begins where the best one ended
    program = run.state.history.program_of(best.candidate)
    assert evaluate(evaluators.pool, program).score == best.score
    names: dict[str, object] = {}
    exec(program, names)  # our own text
    found = names["run"]()  # type: ignore[operator]
    assert -np.abs(found - WANTED).sum() == pytest.approx(best.score)


def test_improvements_go_on_from_the_best_recorded_solution(evaluators: IdleEvaluators) -> None:
    given = settings("improvement", **{"fill.hops": 30})
    before = Filling(evaluators, given)
    before.until(judged=15)
    drain(evaluators)
    best = before.state.history.best_score
    after = Filling(evaluators, given, events=before.events)
    after.until_quiet()
    assert [each.sample for each in after.fills] == [*range(len(after.fills))]
    later = [
        after.state.history.verdicts[each.id].score for each in after.fills[len(before.fills) :]
    ]
    assert later
    # Hops from the initial program would begin at -4.5, two away from where these begin.
    assert best is not None and max(each for each in later if each is not None) > best - 1.0


def test_after_a_resume_a_look_undoes_no_better_hop(evaluators: IdleEvaluators) -> None:
    given, made = settings("improvement", **{"fill.hops": 30}), problem()
    assert made.improvement is not None
    before = Filling(evaluators, given)
    before.until(judged=3)
    (out,) = before.until_out()
    drain(evaluators)
    history = before.state.history
    solutions = Solutions(made.improvement, most=9)
    hops = Improvements(
        before.state.search,
        history=history,
        settings=given,
        contract=made.improvement,
        entry_point=made.entry_point,
        solutions=solutions,
        workers=2,
        seed=1,
    )
    look = hops.propose()  # the hop that is out is evaluated again beside it, and comes first
    assert look is not None and look.is_known
    perfect = solutions.watched(made).stages[-1].score([{"numbers": WANTED}])["score"]
    hops.tell(history.fills[out].parent, history.fills[out].sample, perfect)
    hops.tell(look.parent, look.sample, history.best_score)
    following = hops.propose()
    assert following is not None
    program = following.make()
    assert program is not None and "numpy.array([3.0, 2.0, 6.0])" in program.text


def test_solutions_that_no_program_could_hold_are_not_kept() -> None:
    def scored(outputs: Sequence[Outputs]) -> Mapping[str, float]:
        return {"score": float(outputs[0]["numbers"].size)}

    solutions = Solutions(Improvement(solution=("numbers",), effort=1), most=9)
    made = problem()
    watched = solutions.watched(
        replace(made, stages=(replace(made.stages[0], score=scored),))
    ).stages[0]
    for size in (2000, 2001):
        assert watched.score([{"numbers": np.zeros(size)}]) == {"score": size}
    assert solutions.of(2000.0) is not None and solutions.of(2001.0) is None


def test_a_program_whose_perturbation_fails_costs_its_hops_and_no_more(
    evaluators: IdleEvaluators,
) -> None:
    run = Filling(evaluators, settings("improvement", **{"fill.hops": 5}))
    broken = run.state.history.program_of(INITIAL).replace("(numbers + 0.1 ", "(undefined + 0.1 ")
    first = run.events[1]
    assert isinstance(first, Verdict)
    run = Filling(
        evaluators,
        settings("improvement", **{"fill.hops": 5}),
        events=[run.events[0], replace(first, program=broken)],
    )
    run.until_quiet()
    assert len(run.fills) == 5
    assert run.state.history.filled["improvement"].valid == 0


@pytest.mark.parametrize("makers", [(), ("tuning",)])
def test_where_time_may_be_the_score_nothing_fills(makers: tuple[str, ...]) -> None:
    timed = replace(problem(), isolate_cases=bool(makers))
    with open_idle(settings(*makers), timed, cores=[0], making=[0]) as opened:
        assert opened is None


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

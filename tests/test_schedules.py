"""200 randomised schedules of the overlapped loop: nothing is lost, recorded twice or out of turn.

Each test lives through ten schedules (``schedules.py``) and then reads their logs.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from schedules import AMPLE, Life, Model, Schedule, answer, drawn, live, small_problem

from engine import config
from engine.beginning import restore
from engine.core import INITIAL, Failure, Problem, Refusal
from engine.inference import MOST_AT_ONCE
from engine.pipeline import back_pressure
from engine.search.features import cell_of
from engine.settings import RunSettings
from engine.store import Call, Child, Event, Verdict, replay
from engine.syntax import read
from engine.timeline import MODEL, TIMELINE, read_events

BLOCKS, IN_A_BLOCK = 20, 10


@pytest.fixture(scope="module")
def defaults() -> RunSettings:
    return config.resolve([])


@pytest.fixture(scope="module")
def problem(defaults: RunSettings) -> Problem:
    return small_problem(defaults)


@pytest.fixture(scope="module")
def totals() -> Counter[str]:
    """What happened in all schedules together."""
    return Counter()


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """A folder where a log's appends do not wait for a disk, if there is such a place."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Path(folder)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_each_schedule_leaves_a_log_that_adds_up(
    defaults: RunSettings,
    problem: Problem,
    totals: Counter[str],
    block: int,
    tmp_path: Path,
    in_memory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The limits follow the load a few times a second, and these runs last a tenth of one.
    monkeypatch.setattr(back_pressure, "_BETWEEN_LOADS", 0.0)
    for seed in range(block * IN_A_BLOCK, (block + 1) * IN_A_BLOCK):
        schedule = drawn(seed, defaults)
        folder = (tmp_path if seed % IN_A_BLOCK == 0 else in_memory) / str(seed)
        life = live(schedule, problem, folder)
        assert replay(life.events, problem.direction) == life.history
        assert_each_once(schedule, life)
        assert_the_budget_is_spent(schedule, life)
        assert_in_turn(life)
        assert_the_search_had_its_way(schedule, problem, life)
        assert_the_second_program_is_one_that_was_known(schedule, life)
        assert_calls_say_what_they_show(schedule, life)
        assert_verdicts_have_their_cells(schedule, problem, life)
        assert_answers_are_those_of_the_recorded_prompts(life)
        assert_lists_become_children(life)
        assert_guesses_show_what_is_pending(schedule, life)
        assert_nothing_overlaps_that_may_not(schedule, life)
        assert_the_model_does_one_thing_at_a_time(folder / TIMELINE)
        if schedule.is_clean:
            assert_tokens_add_up(life)
            assert_limits_hold(schedule, life)
        count(totals, schedule, life)


def assert_each_once(schedule: Schedule, life: Life) -> None:
    """Each call has its children, each child that was admitted its verdict, once.

    When time is up, verdicts that are still out are not awaited.
    """
    subjects = Counter((each.event.KIND, each.event.subject) for each in life.events)
    assert set(subjects.values()) == {1}
    children = [each.event for each in life.events if isinstance(each.event, Child)]
    calls = [each.event for each in life.events if isinstance(each.event, Call)]
    verdicts = {each.event.candidate for each in life.events if isinstance(each.event, Verdict)}
    admitted = {child.id for child in children if child.refusal is None}
    if schedule.settings.budget.seconds is None:
        assert verdicts == admitted | {INITIAL}
    assert verdicts <= admitted | {INITIAL}
    due = {(call.iteration, index) for call in calls for index in range(call.k)}
    assert Counter((child.iteration, child.index) for child in children) == Counter(due)


def assert_the_budget_is_spent(schedule: Schedule, life: Life) -> None:
    """As many candidates are evaluated as the budget has, where no clock ends the run before.

    No more are admitted either: the loop looks at the budget before it admits each child.
    """
    budget, history = schedule.settings.budget, life.history
    assert history.evaluated + len(history.pending) == history.admitted <= budget.candidates
    if budget.seconds is None:
        assert history.evaluated == budget.candidates


def assert_in_turn(life: Life) -> None:
    """When a call is recorded, its island's earlier ones are over and its parent has a score."""
    over: dict[str, int] = {}  # where each child was done with: refused, or its verdict is in
    scores: dict[str, float | None] = {}
    calls: dict[int, list[Call]] = {}
    for position, event in enumerate(_events(life)):
        if isinstance(event, Child) and event.refusal is not None:
            over[event.id] = position
        elif isinstance(event, Verdict):
            over[event.candidate] = position
            scores[event.candidate] = event.score
        elif isinstance(event, Call):
            before = calls.setdefault(event.island, [])
            ends = [over[f"{call.iteration}.{i}"] for call in before for i in range(call.k)]
            assert all(call.iteration < event.iteration for call in before)
            assert over[event.parent] < event.known
            assert scores[event.parent] is not None
            if event.guessed:
                # It was composed before all verdicts of its island were in, and recorded after.
                assert event.known <= max(ends)
            else:
                assert event.known == position
            before.append(event)


def assert_the_search_had_its_way(schedule: Schedule, problem: Problem, life: Life) -> None:
    """Each call has the parent that the search chooses where it is recorded: so no guess is wrong.

    A call that is no guess has the search's K as well.
    """
    settings = schedule.settings
    told = restore(settings, problem, [], Model(schedule, random.Random(0), number=0, asked=[]))
    for recorded in life.events:
        event = recorded.event
        if isinstance(event, Call):
            proposal = told.state.search.ask(event.iteration, island=event.island)
            assert (proposal.parent.id, proposal.operator) == (event.parent, event.operator)
            assert event.rule == proposal.rule
            assert event.guessed or proposal.k == event.k
            assert (proposal.partner_id, proposal.repairs_id) == (event.partner, event.repairs)
        told.state.fold(recorded)


def assert_the_second_program_is_one_that_was_known(schedule: Schedule, life: Life) -> None:
    """A crossover's partner has a score; an attempt that is repaired has none, and is so once."""
    events, history = _events(life), life.history
    repaired = [call.repairs for call in history.calls.values() if call.repairs is not None]
    assert len(set(repaired)) == len(repaired)
    for call in history.calls.values():
        assert (call.partner is not None) == (call.operator == "crossover")
        assert (call.repairs is not None) == (call.operator == "repair")
        known = {e.candidate: e for e in events[: call.known] if isinstance(e, Verdict)}
        last = call.prompt.rpartition("<turn>")[2]
        if call.partner is not None:
            assert call.partner != call.parent and known[call.partner].score is not None
        if call.repairs is not None:
            broken = history.children[call.repairs]
            assert known[call.repairs].score is None and broken.operator != "repair"
            assert broken.parent == call.parent
            assert history.calls[broken.iteration].island == call.island
        if schedule.context == AMPLE:
            assert ("# Other program" in last) == (call.partner is not None)
            assert ("# Broken program" in last) == (call.repairs is not None)


def assert_calls_say_what_they_show(schedule: Schedule, life: Life) -> None:
    """A call lists each program that its prompt shows besides the parent, once, and no other."""
    history = life.history
    for call in history.calls.values():
        assert call.rule in {"elite", "uniform", "weighted", "repair"}
        shown = set(call.shown)
        assert len(shown) == len(call.shown) and call.parent not in shown
        titles = set(re.findall(r"^# Program (\S+), score ", call.prompt, re.MULTILINE))
        assert titles <= shown | {call.parent}
        for each in shown:
            verdict = history.verdicts.get(each)  # none where it was refused after all
            if (
                verdict is None or verdict.evaluation.failure is None
            ):  # of others, the change is shown
                assert history.program_of(each).strip() in call.prompt
        if schedule.context == AMPLE:
            assert {call.partner, call.repairs} - {None} <= shown


def assert_verdicts_have_their_cells(schedule: Schedule, problem: Problem, life: Life) -> None:
    """Each score stands in a cell where there is an archive, and nothing else does."""
    features = problem.features if schedule.settings.search.archive == "problem" else None
    for name, verdict in life.history.verdicts.items():
        program, evaluation = life.history.program_of(name), verdict.evaluation
        assert verdict.cell == cell_of(read(program), evaluation, features=features)
        assert (verdict.cell is None) == (features is None or verdict.score is None)


def assert_answers_are_those_of_the_recorded_prompts(life: Life) -> None:
    """Each child answers its call's prompt, with its seed, also after a resume or a right guess."""
    for child in life.history.children.values():
        call = life.history.calls[child.iteration]
        assert child.parent == call.parent
        if child.completion:
            number = _number(child)
            asked = life.asked[number]
            assert asked.prompt == call.prompt
            assert set(asked.seeds) <= set(call.seeds)
            lists = call.operator == "verbalized"
            seed = asked.seeds[0] if lists else call.seeds[child.index]
            whole = answer(number, call.prompt, seed)
            assert whole.startswith(child.completion)
            assert (whole == child.completion) == (child.finish_reason == "stop")
            assert child.prompt_tokens == call.prompt_tokens == len(call.prompt)


def assert_lists_become_children(life: Life) -> None:
    """Each child of a list has the program of its place, and the others are absent."""
    for call in life.history.calls.values():
        if call.operator != "verbalized" or call.k == 1:
            continue
        codes: list[str] = []
        is_whole = False
        for index in range(call.k):
            child = life.history.children[f"{call.iteration}.{index}"]
            if child.completion:
                number = _number(child)
                (seed,) = life.asked[number].seeds
                whole = answer(number, call.prompt, seed)
                entries, is_whole = json.loads(whole)["responses"], child.completion == whole
                codes = [each["code"] + "\n" for each in entries]
            assert (child.rank is None) == (child.refusal is Refusal.ABSENT)
            if child.rank is not None:
                code = codes[child.rank]
                text = None if child.program is None else child.program.text
                assert text == (None if child.refusal is Refusal.UNPARSED else code)
                # Those of an answer that was cut off do not add up to 1.
                assert child.probability == (1 / len(codes) if is_whole else None)


def assert_guesses_show_what_is_pending(schedule: Schedule, life: Life) -> None:
    """A prompt shows the island's candidates without a verdict, if it shows other programs."""
    events = _events(life)
    for call in life.history.calls.values():
        known = events[: call.known]
        judged = {event.candidate for event in known if isinstance(event, Verdict)}
        pending = [
            event.id
            for event in known
            if isinstance(event, Child)
            and event.refusal is None
            and event.id not in judged
            and life.history.calls[event.iteration].island == call.island
        ]
        assert not set(call.ahead) & {event.id for event in known if isinstance(event, Child)}
        pending += call.ahead
        assert bool(pending) == call.guessed
        if not schedule.settings.prompts.history_tokens:
            assert not call.ahead
        shown = call.prompt.count(", score pending\n")
        if schedule.context == AMPLE and schedule.settings.prompts.history_tokens:
            assert all(f"# Program {each}, score pending\n" in call.prompt for each in pending)
            assert shown == len(pending)
        else:
            assert shown <= len(pending)


def assert_nothing_overlaps_that_may_not(schedule: Schedule, life: Life) -> None:
    pipeline, history = schedule.settings.pipeline, life.history
    if not pipeline.overlap or not pipeline.speculate:
        assert (history.guessed, history.given_up) == (0, [])
    if not pipeline.overlap:
        order = [*history.calls]
        phases = [
            (order.index(iteration), phase if schedule.is_clean else 0)
            for event in _events(life)
            for iteration, phase in _phase(event)
        ]
        assert phases == sorted(phases)


def _phase(event: Event) -> list[tuple[int, int]]:
    """Return the iteration of an event and its place in it; nothing for one of no iteration."""
    if isinstance(event, Call):
        return [(event.iteration, 0)]
    if isinstance(event, Child):
        return [(event.iteration, 1)]
    if isinstance(event, Verdict) and event.candidate != INITIAL:
        return [(int(event.candidate.partition(".")[0]), 2)]
    return []


def assert_the_model_does_one_thing_at_a_time(timeline: Path) -> None:
    steps = [each for each in read_events(timeline) if each.ph == "X" and each.tid == MODEL]
    assert all(one.ts + one.dur <= next_.ts for one, next_ in itertools.pairwise(steps))


def assert_tokens_add_up(life: Life) -> None:
    """What the model wrote is what the recorded children and the given up calls have together."""
    history = life.history
    recorded = {_number(child) for child in history.children.values() if child.completion}
    rest = [asked.fan.taken for number, asked in enumerate(life.asked) if number not in recorded]
    wasted = [
        (
            sum(each.generated_tokens for each in taken),
            sum(each.prompt_tokens for each in taken),
            sum(each.cached_prompt_tokens for each in taken),
        )
        for taken in rest
    ]
    given_up = [
        (each.generated_tokens, each.prompt_tokens, each.cached_prompt_tokens)
        for each in history.given_up
    ]
    if any(len(asked.seeds) == 1 for asked in life.asked):  # perhaps a list, asked for again
        assert _added(wasted) == _added(given_up)
    else:
        # A call without a word may be either.
        assert +Counter(filter(any, wasted)) == +Counter(filter(any, given_up))
        assert len(life.asked) == len(history.calls) + len(given_up)
    whole = sum(each.generated_tokens for asked in life.asked for each in asked.fan.taken)
    assert history.generated_tokens + sum(tokens for tokens, _, _ in given_up) == whole
    seconds = history.llm_seconds + sum(each.llm_seconds for each in history.given_up)
    assert seconds == pytest.approx(life.steps)


def _added(costs: list[tuple[int, int, int]]) -> list[int]:
    return [sum(each) for each in zip(*costs, strict=True)] or [0, 0, 0]


def assert_limits_hold(schedule: Schedule, life: Life) -> None:
    """A call that is no guess's successor begins where there is room for it, or alone."""
    pipeline = schedule.settings.pipeline
    if not pipeline.speculate:
        most = pipeline.children or MOST_AT_ONCE
        for asked in life.asked:
            assert asked.beside == 0 or asked.beside + len(asked.seeds) <= most


def _events(life: Life) -> list[Event]:
    return [each.event for each in life.events]


def _number(child: Child) -> int:
    """Return the number of the call that a child says it answers."""
    said = re.search(r'call"?:? (\d+)', child.completion.partition("\n")[0])
    assert said is not None
    return int(said[1])


def count(totals: Counter[str], schedule: Schedule, life: Life) -> None:
    history = life.history
    totals["schedules"] += 1
    totals["clean"] += schedule.is_clean
    totals["right guesses"] += history.guessed
    for each in history.given_up:
        call = history.calls.get(each.iteration)
        wrong = call is not None and call.island == each.island and call.parent != each.parent
        totals["wrong guesses"] += wrong
        totals["given up"] += 1
        totals["wasted tokens"] += each.generated_tokens
    totals["resumes"] += len(history.sessions) - 1
    totals["calls"] += len(history.calls)
    totals["candidates"] += history.evaluated
    home = {str(call.iteration): call.island for call in history.calls.values()}
    totals["parents from elsewhere"] += sum(
        home.get(call.parent.partition(".")[0], call.island) != call.island
        for call in history.calls.values()
    )
    asked = [*history.calls.values()]
    totals.update(call.operator for call in asked)
    totals.update(f"guessed {call.operator}" for call in asked if call.guessed)
    totals["guesses on guesses"] += sum(bool(call.ahead) for call in history.calls.values())
    lists = {call.iteration for call in asked if call.operator == "verbalized"}
    totals["second answers"] += sum(
        child.index > 0 and bool(child.completion) and child.iteration in lists
        for child in history.children.values()
        if schedule.is_clean
    )
    totals["shown"] += sum(len(call.shown) for call in asked)
    totals.update(f"rule {call.rule}" for call in asked)
    totals["cells"] += sum(verdict.cell is not None for verdict in history.verdicts.values())
    totals["aborted"] += sum(c.finish_reason == "abort" for c in history.children.values())
    totals["crashes"] += sum(
        v.evaluation.failure is Failure.CRASH for v in history.verdicts.values()
    )
    totals.update(f"refused: {reason}" for reason in history.refusals.elements())


def test_all_of_that_did_happen(totals: Counter[str]) -> None:
    """Guards the schedules: they hold nothing to account if nothing happens in them."""
    if totals["schedules"] < BLOCKS * IN_A_BLOCK:
        pytest.skip("not all schedules were gone through")
    expected = {
        "clean": 50,
        "right guesses": 80,
        "wrong guesses": 25,
        "guesses on guesses": 10,
        "wasted tokens": 1000,
        "resumes": 100,
        "parents from elsewhere": 20,
        "aborted": 50,
        "crashes": 50,
        "shown": 2000,
        "cells": 300,
        "rule uniform": 50,
        "rule weighted": 200,
        "crossover": 100,
        "verbalized": 100,
        "guessed verbalized": 25,
        "second answers": 10,
        "refused: absent": 50,
        "repair": 50,
        "guessed crossover": 10,
        "guessed repair": 3,
        **{f"refused: {reason}": 20 for reason in ("budget", "duplicate", "undefined", "unparsed")},
    }
    assert {name: n for name, n in expected.items() if totals[name] < n} == {}, dict(totals)

"""What holds of a run's prompts, answers and guesses, whatever befell it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable

import pytest
from chance_model import answer
from lives import Life
from schedules import AMPLE, Schedule

from engine.core import INITIAL, Problem, Refusal
from engine.inference import MOST_AT_ONCE
from engine.store import Call, Child, Event, Verdict


def events_of(life: Life) -> list[Event]:
    """Return the events of a run's log, without their sessions."""
    return [each.event for each in life.events]


def the_second_program_is_one_that_was_known(
    schedule: Schedule, problem: Problem, life: Life
) -> None:
    """A crossover's partner has a score; an attempt that is repaired has none, and is so once."""
    events, history = events_of(life), life.history
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


def calls_say_what_they_show(schedule: Schedule, problem: Problem, life: Life) -> None:
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


def answers_are_those_of_the_recorded_prompts(
    schedule: Schedule, problem: Problem, life: Life
) -> None:
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


def lists_become_children(schedule: Schedule, problem: Problem, life: Life) -> None:
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


def guesses_show_what_is_pending(schedule: Schedule, problem: Problem, life: Life) -> None:
    """A prompt shows the island's candidates without a verdict, if it shows other programs."""
    events = events_of(life)
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


def nothing_overlaps_that_may_not(schedule: Schedule, problem: Problem, life: Life) -> None:
    pipeline, history = schedule.settings.pipeline, life.history
    if not pipeline.overlap or not pipeline.speculate:
        assert (history.guessed, history.given_up) == (0, [])
    if not pipeline.overlap:
        order = [*history.calls]
        phases = [
            (order.index(iteration), phase if schedule.is_clean else 0)
            for event in events_of(life)
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


def tokens_add_up(schedule: Schedule, problem: Problem, life: Life) -> None:
    """What the model wrote is what the recorded children and the given up calls have together.

    Where a session was cut short, what it wrote is generated again.
    """
    if not schedule.is_clean:
        return
    history = life.history
    recorded = {_number(child) for child in history.children.values() if child.completion}
    rest = [asked.taken for number, asked in enumerate(life.asked) if number not in recorded]
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
    whole = sum(each.generated_tokens for asked in life.asked for each in asked.taken)
    assert history.generated_tokens + sum(tokens for tokens, _, _ in given_up) == whole
    seconds = history.llm_seconds + sum(each.llm_seconds for each in history.given_up)
    assert seconds == pytest.approx(life.steps)


def _added(costs: list[tuple[int, int, int]]) -> list[int]:
    return [sum(each) for each in zip(*costs, strict=True)] or [0, 0, 0]


def limits_hold(schedule: Schedule, problem: Problem, life: Life) -> None:
    """A call that is no guess's successor begins where there is room for it, or alone."""
    if not schedule.is_clean:
        return
    pipeline = schedule.settings.pipeline
    if not pipeline.speculate:
        most = pipeline.children or MOST_AT_ONCE
        for asked in life.asked:
            assert asked.beside == 0 or asked.beside + len(asked.seeds) <= most


def _number(child: Child) -> int:
    """Return the number of the call that a child says it answers."""
    said = re.search(r'call"?:? (\d+)', child.completion.partition("\n")[0])
    assert said is not None
    return int(said[1])


PROMPT_INVARIANTS: tuple[Callable[[Schedule, Problem, Life], None], ...] = (
    the_second_program_is_one_that_was_known,
    calls_say_what_they_show,
    answers_are_those_of_the_recorded_prompts,
    lists_become_children,
    guesses_show_what_is_pending,
    nothing_overlaps_that_may_not,
    tokens_add_up,
    limits_hold,
)

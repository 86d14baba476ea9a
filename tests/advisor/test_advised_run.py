"""The loop with an advisor: from ideas to programs, and on from wherever a run was killed."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from scripted import (
    Death,
    ScriptModel,
    beginning,
    children_of,
    go_on,
    history_of,
    kind_of,
    settings_of,
    usual,
)

from engine.advisor import advised_answers
from engine.core import Advice, Event, Idea, Novelty, Question, Refusal, Update
from engine.inference import Sampling
from engine.learning import group_of
from engine.learning.rewards import Rewards
from engine.settings import RunSettings
from engine.store import Call, Child


@pytest.fixture(scope="module")
def settings() -> RunSettings:
    return settings_of()


@pytest.fixture(scope="module")
def run(settings: RunSettings) -> tuple[list[Event], ScriptModel]:
    events = beginning()
    return events, go_on(settings, events)


def test_each_child_is_recorded_behind_its_ideas_and_advice(
    run: tuple[list[Event], ScriptModel],
) -> None:
    events, _ = run
    order = {(event.KIND, event.subject): place for place, event in enumerate(events)}
    children = children_of(events)
    assert len([child for child in children if child.refusal is None]) == 20
    for child in children:
        place = order["advice", child.id]
        ideas = [order.get(("idea", f"{child.id}.{number}")) for number in (1, 2, 3)]
        if child.finish_reason != "abort":
            assert [*ideas, place] == [*range(place - 3, place + 1)]
        assert order["child", child.id] == place + 1


def test_the_first_call_asks_nobody_for_novelty_and_later_ones_do(
    run: tuple[list[Event], ScriptModel],
) -> None:
    events, _ = run
    by_iteration: dict[int, set[tuple[str, ...]]] = {}
    for event in events:
        if isinstance(event, Advice) and event.experiment:
            asked = tuple(each.question for each in event.consultations)
            by_iteration.setdefault(int(event.child.split(".")[0]), set()).add(asked)
    assert by_iteration[0] == {(Question.IDEAS, Question.SELECTION)}
    later = {each for number, kinds in by_iteration.items() if number for each in kinds}
    assert later == {(Question.IDEAS, Question.NOVELTY, Question.SELECTION)}


def test_siblings_share_a_prompt_and_each_answer_has_a_seed_of_its_own(
    settings: RunSettings, run: tuple[list[Event], ScriptModel]
) -> None:
    _, model = run
    k = settings.search.k
    assert {len(each.sampling) for each in model.asked if each.kind == "hypothesis"} == {k}
    assert {len(each.sampling) for each in model.asked if each.kind != "hypothesis"} == {1}
    seeds = [one.seed for each in model.asked for one in each.sampling]
    assert len(set(seeds)) == len(seeds)
    assert {one.temperature for each in model.asked for one in each.sampling} == {1.0}


def test_a_program_is_written_from_one_idea_without_the_repository(
    run: tuple[list[Event], ScriptModel],
) -> None:
    events, model = run
    advice = [event for event in events if isinstance(event, Advice) and event.experiment]
    written = [each.text for each in model.asked if each.kind == "program"]
    ideas = {event.id: event for event in events if isinstance(event, Idea)}
    assert len(written) == len(advice)
    for each in advice:
        assert each.idea is not None
        asked = [text for text in written if each.experiment in text]
        assert any(ideas[each.idea].hypothesis in text for text in asked)
    assert not any("# Ideas so far" in text for text in written)
    assert all("# Ideas so far" in each.text for each in model.asked if each.kind != "program")


def test_an_idea_that_repeats_another_is_never_tested_nor_shown_again(
    run: tuple[list[Event], ScriptModel],
) -> None:
    events, _ = run
    repeating = {e.id for e in events if isinstance(e, Idea) and e.novelty is Novelty.REPEATS}
    tested = {event.idea for event in events if isinstance(event, Advice)}
    assert repeating and not repeating & tested


def test_results_of_experiments_are_shown_to_later_calls(
    run: tuple[list[Event], ScriptModel],
) -> None:
    events, _ = run
    prompts = [event.prompt for event in events if isinstance(event, Call)]
    assert "None yet." in prompts[0]
    assert " -> score " in prompts[2] or " -> no score (" in prompts[2]


def test_tokens_of_the_advisor_count_in_the_runs_accounts(
    run: tuple[list[Event], ScriptModel],
) -> None:
    events, _ = run
    history = history_of(events)
    answers = [c for e in events if isinstance(e, Advice) for c in e.consultations]
    children = children_of(events)
    assert history.advisor_tokens == sum(len(each.answer_ids) for each in answers) > 0
    own = sum(len(child.completion_ids) for child in children)
    assert history.generated_tokens == history.advisor_tokens + own
    prompts = [*answers, *children]
    assert history.prompt_tokens == sum(each.prompt_tokens for each in prompts)
    for each in prompts:
        assert sum(each.missed.values()) == each.prompt_tokens - each.cached_prompt_tokens
    assert history.missed.total() == history.prompt_tokens - history.cached_prompt_tokens


def test_groups_hold_the_advisors_answers_as_they_were_sampled(
    run: tuple[list[Event], ScriptModel],
) -> None:
    events, model = run
    history = history_of(events)
    asked = {each.token_ids: each for each in model.asked}
    rule = Rewards(kind="rank", direction=history.direction, initial=0.0, target=None)
    groups = [
        group_of(call, history, rewards=rule, answers_of=advised_answers)
        for call in list(history.calls.values())[:-1]
    ]
    assert groups
    for group in groups:
        assert group is not None and len(group.members) == 4
        for member in group.members:
            for answer in member.answers:
                prompt = asked[answer.sampled_from.prompt_ids]
                assert prompt.kind != "program"
                assert answer.sampled_from.grammar == prompt.sampling[0].grammar
                assert model.decode(answer.token_ids).startswith('{"idea')


# The adapter.


def test_the_advisor_answers_from_the_calls_adapter_and_the_implementer_from_none(
    settings: RunSettings,
) -> None:
    update = Update(number=1, version=1, groups=(), stale=0, progress=0.0, reward=0.0)
    events = [*beginning(), update]
    model = go_on(settings, events)
    adapters = {(each.kind == "program", each.adapter) for each in model.asked}
    assert adapters == {(True, 0), (False, 1)}
    assert {event.adapter for event in events if isinstance(event, Call)} == {1}


# Answers of no use.


def broken(kind: str) -> ScriptModel:
    def answer(sampling: Sampling) -> str:
        if kind_of(sampling) == kind and sampling.seed % 2:
            return '{"ideas": "none", "idea": 10000'
        return usual(sampling)

    return ScriptModel(answer)


@pytest.mark.parametrize(
    ("kind", "question"),
    [
        ("hypothesis", Question.IDEAS),
        ("refines", Question.NOVELTY),
        ("experiment", Question.SELECTION),
    ],
)
def test_a_chain_whose_answer_is_of_no_use_ends_as_an_unparsed_child(
    settings: RunSettings, kind: str, question: Question
) -> None:
    events = beginning()
    go_on(settings, events, model=broken(kind))
    history = history_of(events)
    unread = [each for each in history.advice.values() if each.unread is question]
    assert len(unread) > 2
    for each in unread:
        child = history.children[each.child]
        assert child.refusal is Refusal.UNPARSED
        assert (child.completion, child.prompt_tokens, each.idea) == ("", 0, None)
        assert each.consultations[-1].question is question
        assert each.consultations[-1].answer_ids  # what it cost, and what is to be learned from
    assert history.evaluated == 20


# Cut short.


def sorted_out(events: list[Event]) -> dict[tuple[str, str], Event]:
    """Return the events by kind and subject, without what a death may change.

    That is why tokens were computed, and children that the end of the budget cut off.
    """
    cut = {e.id for e in children_of(events) if e.finish_reason == "abort" or e.refusal}
    kept: dict[tuple[str, str], Event] = {}
    for event in events:
        child = event.id if isinstance(event, Child) else getattr(event, "child", None)
        if child in cut:
            continue
        if isinstance(event, Child):
            event = dataclasses.replace(event, missed={})
        if isinstance(event, Advice):
            plain = tuple(dataclasses.replace(each, missed={}) for each in event.consultations)
            event = dataclasses.replace(event, consultations=plain)
        kept[event.KIND, event.subject] = event
    return kept


@pytest.mark.parametrize("overlap", ["true", "false"])
def test_a_run_that_dies_anywhere_goes_on_alike(overlap: str) -> None:
    settings = settings_of(f"pipeline.overlap={overlap}")
    model = ScriptModel()  # its words have the same numbers in all sessions
    whole = beginning()
    go_on(settings, whole, model=model)
    for most in range(4, len(whole), 17):
        events = beginning()
        with pytest.raises(Death):
            go_on(settings, events, model=model, most=most)
        assert len(events) <= most
        go_on(settings, events, model=model)
        assert sorted_out(events) == sorted_out(whole)
    counted = Counter((event.KIND, event.subject) for event in whole)
    assert set(counted.values()) == {1}


def test_a_run_ends_at_its_budget_of_tokens_with_its_chains(settings: RunSettings) -> None:
    ended = settings_of("budget.candidates=null", "budget.tokens=1500", "islands.count=3")
    events = beginning()
    go_on(ended, events)
    history = history_of(events)
    assert history.generated_tokens >= 1500
    assert not [call for call in history.calls.values() if history.missing(call)]
    assert set(history.advice) == set(history.children)

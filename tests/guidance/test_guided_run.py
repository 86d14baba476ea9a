"""The loop with guidance: rewritten before children, credited for them, and on from any kill."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hand_log import hand_run
from scripted import (
    Death,
    ScriptModel,
    beginning,
    children_of,
    go_on,
    history_of,
    small_problem,
)
from table_fan import TableFan

from engine import config
from engine.core import Candidate, Child, Event, Guidance, Proposal, UserError
from engine.guidance import GuidedOperator, guided
from engine.guidance.text import INITIAL_GUIDANCE
from engine.inference import Sampling
from engine.prompts.chat import Rewrite
from engine.settings import RunSettings
from engine.store import Call

ARGUMENTS = (
    *("method=codeevolve", "search.operators.diff=0", "search.operators.rewrite=1"),
    *("search.archive=none", "search.k=2", "islands.count=2", "islands.migrate_every=3"),
    *("search.parent.population=4", "search.parent.rate=0.4", "budget.seconds=null"),
    *("budget.candidates=60", "model.max_tokens=300", "guidance.answer_tokens=200"),
)


def settings_of(*arguments: str) -> RunSettings:
    return config.resolve([*ARGUMENTS, *arguments])


class GuidedModel(ScriptModel):
    """Rewrites the first open heading of the guidance it is shown, mostly, and writes programs."""

    def __init__(self) -> None:
        super().__init__(self._written)
        self._asks = False

    def fanout(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int = 0
    ) -> TableFan:
        self._asks = "Improve the guidance" in self.decode(token_ids)
        return super().fanout(token_ids=token_ids, sampling=sampling, adapter=adapter)

    def _written(self, sampling: Sampling) -> str:
        rng = random.Random(sampling.seed)
        if not self._asks:
            return f"```python\ndef f(x):\n    return x * {sampling.seed}\n```"
        search = rng.choice(["Mistakes to avoid:", "Approaches to consider:", "no such line"])
        return (
            f"<<<<<<< SEARCH\n{search}\n=======\n{search}\n- idea {sampling.seed}\n>>>>>>> REPLACE"
        )


@pytest.fixture(scope="module")
def run() -> tuple[list[Event], GuidedModel]:
    events, model = beginning(), GuidedModel()
    go_on(settings_of(), events, model=model)
    return events, model


def guidance_of(events: Sequence[Event]) -> dict[str, Guidance]:
    return {each.child: each for each in events if isinstance(each, Guidance)}


def test_guidance_is_rewritten_before_children_that_explore_and_no_others(
    run: tuple[list[Event], GuidedModel],
) -> None:
    events, _ = run
    calls = {each.iteration: each for each in events if isinstance(each, Call)}
    written = guidance_of(events)
    assert {each.rule for each in calls.values()} == {"first", "explore", "exploit"}
    order = {(each.KIND, each.subject): place for place, each in enumerate(events)}
    for child in children_of(events):
        asks = calls[child.iteration].rule != "exploit"
        if child.finish_reason == "abort":
            continue
        assert (child.id in written) is asks
        if asks:  # in one transaction, one behind the other
            assert order["guidance", child.id] + 1 == order["child", child.id]
            assert written[child.id].of == calls[child.iteration].guidance
    assert {each.guidance for each in calls.values() if each.rule == "first"} == {None}
    assert any(each.guidance for each in calls.values() if each.rule == "exploit")


def test_a_program_is_asked_for_with_its_guidance_behind_what_it_shows(
    run: tuple[list[Event], GuidedModel],
) -> None:
    events, model = run
    programs = [each.text for each in model.asked if "Improve the guidance" not in each.text]
    asking = [each.text for each in model.asked if "Improve the guidance" in each.text]
    assert all("# Guidance\nApproaches to consider:" in text for text in (*programs, *asking))
    for each in guidance_of(events).values():
        shown = INITIAL_GUIDANCE if each.text is None and each.of is None else each.text
        if shown is not None:
            assert any(shown in text for text in programs)
    assert all(text.index("# Current program") < text.index("# Guidance") for text in programs)


class ThinkingModel(GuidedModel):
    """Thinks of a block before each answer."""

    def _written(self, sampling: Sampling) -> str:
        heading = "Mistakes to avoid:"
        block = f"<<<<<<< SEARCH\n{heading}\n=======\n{heading}\n- draft\n>>>>>>> REPLACE"
        return f"<think>\n{block}\n</think>\n{super()._written(sampling)}"


def test_what_the_model_thinks_of_is_no_guidance() -> None:
    events = beginning()
    go_on(settings_of("budget.candidates=12"), events, model=ThinkingModel())
    texts = [each.text for each in guidance_of(events).values() if each.text is not None]
    assert texts and all("- idea" in text and "- draft" not in text for text in texts)


@pytest.mark.parametrize("dimensions", [(), ("nodes", "depth")])
def test_both_prompts_begin_with_the_same_task_and_programs(dimensions: tuple[str, ...]) -> None:
    settings, model = settings_of(), GuidedModel()
    operator = Rewrite(
        problem=small_problem(),
        tokenizer=model,
        max_tokens=settings.model.max_tokens,
        prompts=settings.prompts,
        dimensions=dimensions,
    )
    asker = guided({"rewrite": operator}, settings.guidance)["rewrite"]
    assert isinstance(asker, GuidedOperator)
    parent = Candidate(id="initial", program=small_problem().initial_program, score=0.5)
    proposal = Proposal(
        iteration=0,
        parent=parent,
        history=(),
        operator="rewrite",
        k=2,
        seed=0,
        guidance=INITIAL_GUIDANCE,
    )
    ids = zip(asker.rewriting(proposal).token_ids, asker.compose(proposal).token_ids, strict=False)
    shared = itertools.takewhile(lambda pair: pair[0] == pair[1], ids)
    text = model.decode([one for one, _ in shared])
    assert all(name in text for name in dimensions)
    assert "# Current program" in text and INITIAL_GUIDANCE in text


def test_an_answer_of_no_use_leaves_the_old_guidance(run: tuple[list[Event], GuidedModel]) -> None:
    events, _ = run
    written, history = guidance_of(events), history_of(events)
    unread = [each for each in written.values() if each.text is None]
    assert len(unread) == history.guidance.unread > 2
    assert len(history.guidance) == len(written) - len(unread) > 2
    assert all("no such line" in each.answer for each in unread if each.finish_reason == "stop")


def test_guidance_has_the_best_score_that_came_of_it(run: tuple[list[Event], GuidedModel]) -> None:
    events, _ = run
    history, written = history_of(events), guidance_of(events)
    best: dict[tuple[int, str | None], float] = {}
    for child in children_of(events):
        verdict, call = history.verdicts.get(child.id), history.calls[child.iteration]
        if verdict is not None and verdict.score is not None:
            own = written.get(child.id)
            name = child.id if own is not None and own.text is not None else call.guidance
            key = call.island, name
            best[key] = max(best.get(key, 0.0), verdict.score)
    for island in (0, 1):
        for tried in history.guidance.as_of(len(events), island=island):
            assert tried.score == best.get((island, tried.id))
            assert history.guidance.knows(tried.id)
    assert [each.id for each in history.guidance.as_of(3, island=0)] == [None]


def test_its_tokens_count_in_the_runs_accounts(run: tuple[list[Event], GuidedModel]) -> None:
    events, _ = run
    history, written = history_of(events), guidance_of(events).values()
    own = sum(len(child.completion_ids) for child in children_of(events))
    assert history.guidance_tokens == sum(len(each.answer_ids) for each in written) > 0
    assert history.generated_tokens == history.guidance_tokens + own
    for each in (*written, *children_of(events)):
        assert sum(each.missed.values()) == each.prompt_tokens - each.cached_prompt_tokens


def test_ancestors_and_inspirations_are_shown_where_it_exploits_alone(
    run: tuple[list[Event], GuidedModel],
) -> None:
    events, _ = run
    calls = [each for each in events if isinstance(each, Call)]
    assert {each.shown for each in calls if each.rule != "exploit"} == {()}
    exploiting = [each for each in calls if each.rule == "exploit"]
    assert max(each.prompt.count("That program has the score") for each in exploiting) >= 2
    assert max(each.prompt.count("# Program ") for each in exploiting) == 2


def sorted_out(events: Sequence[Event]) -> dict[tuple[str, str], Event]:
    """Return the events by kind and subject, without what a death may change."""
    cut = {e.id for e in children_of(events) if e.finish_reason == "abort" or e.refusal}
    kept: dict[tuple[str, str], Event] = {}
    for event in events:
        child = event.id if isinstance(event, Child) else getattr(event, "child", None)
        if child not in cut:
            if isinstance(event, Child | Guidance):
                event = dataclasses.replace(event, missed={})
            kept[event.KIND, event.subject] = event
    return kept


def test_a_run_that_dies_anywhere_goes_on_alike() -> None:
    settings = settings_of("budget.candidates=24", "pipeline.overlap=false")
    model = GuidedModel()  # its words have the same numbers in all sessions
    whole = beginning()
    go_on(settings, whole, model=model)
    for most in range(4, len(whole), 9):
        events = beginning()
        with pytest.raises(Death):
            go_on(settings, events, model=model, most=most)
        go_on(settings, events, model=model)
        assert sorted_out(events) == sorted_out(whole)
    counted = Counter((event.KIND, event.subject) for event in whole)
    assert set(counted.values()) == {1}


def test_a_run_ends_at_its_budget_of_tokens_with_its_chains() -> None:
    events = beginning()
    go_on(settings_of("budget.candidates=null", "budget.tokens=900"), events, model=GuidedModel())
    history = history_of(events)
    assert history.generated_tokens >= 900
    assert not [call for call in history.calls.values() if history.missing(call)]


def test_a_program_that_was_written_without_guidance_is_not_the_initial_ones() -> None:
    known = hand_run().history.guidance  # an infill on island 0 and a diff on island 1
    scores = [[each.score for each in known.as_of(1000, island=island)] for island in (0, 1)]
    assert scores == [[None], [0.9]]


def test_guidance_that_no_operator_shows_is_refused() -> None:
    with pytest.raises(UserError, match=r"guidance\.enabled is True; it must be false where no"):
        config.resolve(["guidance.enabled=true"])


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("learning=grpo", "learning.method"),
        ("pipeline.speculate=true", "pipeline.speculate"),
        ("width.policy=cost_aware", "width.policy"),
        ("advisor.enabled=true", "advisor"),
    ],
)
def test_what_guidance_cannot_be_combined_with(argument: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        settings_of(argument)

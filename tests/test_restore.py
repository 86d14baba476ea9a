"""A search and a cascade told what is recorded are where the run that recorded it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine import config
from engine.core import INITIAL, ChatFrame, Direction, Evaluation, Failure, Problem, Proposal
from engine.evaluation import Cascade
from engine.problem import load_problem
from engine.restore import entry_of, new_search, told_cascade, told_search
from engine.search import Entry
from engine.settings import LAYOUTS, RunSettings
from engine.store import Child, Event, Recorded, RunHistory, Session, Verdict


class NoPool:
    """A pool that only says what it was handed."""

    def __init__(self) -> None:
        self.stages: list[int] = []

    def submit(self, *, candidate_id: str, program: str, stage: int) -> None:
        self.stages.append(stage)

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        return []


class Letters:
    """A tokenizer to which each character is a token."""

    max_model_len = 4096
    block_size = 16

    def encode(self, text: str) -> list[int]:
        return [*map(ord, text)]

    def chat_frame(self, *, system: str) -> ChatFrame:
        return ChatFrame(opening=system, closing="", turn="")


@pytest.fixture(scope="module", params=LAYOUTS)
def settings(request: pytest.FixtureRequest) -> RunSettings:
    return config.resolve(
        [
            *("search.failures=3", "search.parent.p_elite=1", "search.parent.p_uniform=0"),
            *(f"prompts.layout={request.param}", "prompts.history_tokens=100"),
            "prompts.growth_tokens=50",
        ]
    )


@pytest.fixture(scope="module")
def problem(settings: RunSettings) -> Problem:
    whole = load_problem(Path(settings.problem))
    return replace(whole, stages=(replace(whole.stages[0], name="quick"), *whole.stages))


def child(iteration: int, index: int) -> Child:
    return Child(
        id=f"{iteration}.{index}",
        iteration=iteration,
        index=index,
        parent=INITIAL,
        operator="rewrite",
        completion=f"answer {iteration}.{index}",
        completion_ids=(iteration, index),
        finish_reason="stop",
        program=f"def f(x):\n    return x + {iteration} * 10 + {index}\n",
        refusal=None,
        prompt_tokens=1,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )


def verdict_of(iteration: int, index: int) -> Evaluation:
    """The proxy ranks the wrong way round; every other candidate was rejected, and is an audit."""
    quality = (7 * iteration + 3 * index) % 16 / 100
    metrics = {"quick.score": -quality} | ({"cascade.audited": 1.0} if index % 2 else {})
    if index == 3:
        return Evaluation(score=None, failure=Failure.TIMEOUT, message=f"{iteration}: late")
    return Evaluation(score=quality, failure=None, metrics=metrics)


def recorded(iterations: int) -> RunHistory:
    first = Evaluation(score=0.9, failure=None, metrics={"quick.score": 0.0})
    events: list[Event] = [
        Session(number=0, engine="0", fingerprint="f"),
        Verdict.of(INITIAL, first, program="def f(x):\n    return x\n"),
    ]
    for iteration in range(iterations):
        events += [child(iteration, index) for index in range(4)]
        for index in (2, 0, 3, 1):
            events.append(Verdict.of(f"{iteration}.{index}", verdict_of(iteration, index)))
    history = RunHistory(direction=Direction.MAXIMISE)
    for event in events:
        history.fold(Recorded(session=0, elapsed=0.0, event=event))
    return history


def lived(settings: RunSettings, problem: Problem, history: RunHistory) -> list[Proposal]:
    """Return what a run asks while it records ``history``, and after its end."""
    search = new_search(settings, problem, Letters())
    search.admit(Entry(id=INITIAL, program=history.program_of(INITIAL)))
    search.tell(INITIAL, history.verdicts[INITIAL].evaluation())
    proposals = []
    for iteration in range(1 + max(each.iteration for each in history.children.values())):
        proposals.append(search.ask(iteration))
        for each in history.children.values():
            if each.iteration == iteration:
                assert each.program is not None
                search.admit(entry_of(each, each.program))
                search.tell(each.id, history.verdicts[each.id].evaluation())
    return [*proposals, search.ask(len(proposals))]


def test_a_told_search_asks_what_the_run_would_have_asked(
    settings: RunSettings, problem: Problem
) -> None:
    history = recorded(4)
    live = lived(settings, problem, history)
    told = told_search(settings, problem, history, Letters())
    proposals = [told.ask(iteration) for iteration in range(5)]
    assert proposals == live
    shown = [[each.evaluation.message for each in one.failures] for one in proposals]
    assert shown[2:] == [
        ["0: late", "1: late"],
        ["0: late", "1: late", "2: late"],
        ["1: late", "2: late", "3: late"],
    ]


def test_a_told_search_shows_what_the_run_would_have_shown(
    settings: RunSettings, problem: Problem
) -> None:
    uniform = replace(settings.search.parent, p_elite=0.0, p_uniform=1.0)
    settings = replace(settings, search=replace(settings.search, parent=uniform))
    history = recorded(12)
    live = lived(settings, problem, history)
    for iteration in range(13):  # each asked for by itself
        told = told_search(settings, problem, history, Letters())
        assert told.ask(iteration) == live[iteration]
    compactions, shown = live[-1].compactions, sum(len(each.history) for each in live)
    if settings.prompts.layout == "transcript":
        turns = [turn for each in live for turn in each.lineage]
        assert len(turns) > 5 and (compactions, shown) == (0, 0)
        assert all(turn.answer.startswith("answer ") and turn.answer_ids for turn in turns)
    else:
        assert shown > 20 and (compactions > 0) == (settings.prompts.layout == "stable")


def test_a_told_cascade_knows_which_stage_is_switched_off(
    settings: RunSettings, problem: Problem
) -> None:
    history, pool = recorded(40), NoPool()
    cascade = told_cascade(settings, problem, history, pool)
    cascade.submit(candidate_id="40.0", program="", iteration=40)
    assert pool.stages == [1]
    off = cascade.switched_off["quick"]
    assert off.correlation < 0 and 0 < off.iteration < 40

    unknowing = Cascade(
        pool=NoPool(), problem=problem, settings=settings.evaluation.cascade, seed=0
    )
    for name, verdict in history.verdicts.items():
        iteration = -1 if name == INITIAL else history.children[name].iteration
        if iteration < off.iteration - 1:
            unknowing.tell(name, verdict.evaluation(), iteration=iteration)
    unknowing.submit(candidate_id="40.0", program="", iteration=40)
    assert not unknowing.switched_off  # it took the last iteration before it

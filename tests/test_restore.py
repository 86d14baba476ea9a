"""A search and a cascade told what is recorded are where the run that recorded it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine import config
from engine.core import INITIAL, Direction, Evaluation, Failure, Problem
from engine.evaluation import Cascade
from engine.problem import load_problem
from engine.restore import new_search, told_cascade, told_search
from engine.settings import RunSettings
from engine.store import Child, Event, Recorded, RunHistory, Session, Verdict


class NoPool:
    """A pool that only says what it was handed."""

    def __init__(self) -> None:
        self.stages: list[int] = []

    def submit(self, *, candidate_id: str, program: str, stage: int) -> None:
        self.stages.append(stage)

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        return []


@pytest.fixture(scope="module")
def settings() -> RunSettings:
    return config.resolve(
        ["search.failures=3", "search.parent.p_elite=1", "search.parent.p_uniform=0"]
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
        completion="",
        finish_reason="stop",
        program=f"def f(x):\n    return x + {iteration} * 10 + {index}\n",
        refusal=None,
        prompt_tokens=1,
        cached_prompt_tokens=0,
        generated_tokens=1,
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


def test_a_told_search_asks_what_the_run_would_have_asked(
    settings: RunSettings, problem: Problem
) -> None:
    history = recorded(4)
    live = new_search(settings, problem)
    live.admit(INITIAL, history.program_of(INITIAL), iteration=-1)
    live.tell(INITIAL, history.verdicts[INITIAL].evaluation())
    for iteration in range(4):
        for each in (child(iteration, index) for index in range(4)):
            assert each.program is not None
            live.admit(each.id, each.program, iteration=iteration, parent=each.parent)
            live.tell(each.id, verdict_of(iteration, each.index))
    told = told_search(settings, problem, history)
    proposals = [told.ask(iteration) for iteration in range(5)]
    assert proposals == [live.ask(iteration) for iteration in range(5)]
    shown = [[each.evaluation.message for each in one.failures] for one in proposals]
    assert shown[2:] == [
        ["0: late", "1: late"],
        ["0: late", "1: late", "2: late"],
        ["1: late", "2: late", "3: late"],
    ]


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

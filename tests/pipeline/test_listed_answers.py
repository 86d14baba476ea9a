"""Runs with the operator `verbalized`: what is recorded of answers that list several programs.

The loop, the search, the prompts and the decoder are the real ones; the model gives the answers
that a test has written down, and then whole ones.
"""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from inline import Inline
from looping import evolve
from table_fan import TableFan

from engine import config
from engine.beginning import restore, told_cascade
from engine.budget import Account
from engine.core import INITIAL, ChatFrame, Evaluation, Refusal
from engine.inference import EngineLoad, Sampling
from engine.problem import load_problem
from engine.prompts.verbalized import Verbalized
from engine.store import Call, Child, Event, Recorded, Session, Verdict, replay
from engine.timeline import TIMELINE, Timeline

K = 4
HANGS = 120.0  # seconds
NEW = object()
"""Stands for a program that no other answer holds."""


class Death(Exception):
    """The process dies here."""


class Model:
    """Gives answers in their order, each in one step."""

    block_size = 16
    max_model_len = 1 << 20

    def __init__(self, answers: Sequence[str] = ()) -> None:
        self._answers = [*answers]
        self._fans: list[TableFan] = []
        self.asked: list[Sampling] = []

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        return [*map(ord, text)]

    def chat_frame(self, *, system: str) -> ChatFrame:
        return ChatFrame(opening=f"{system}\n", closing="\n", turn="\n")

    def load(self) -> EngineLoad:
        return EngineLoad(waiting=0, kv_usage=0.0)

    def adopt(self, version: int, folder: Path) -> None:
        raise ValueError("a stand-in takes no adapter")

    def fanout(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int = 0
    ) -> TableFan:
        (one,) = sampling  # all children of a call have one completion
        assert one.schema is not None
        self.asked.append(one)
        known = self._answers.pop(0) if self._answers else listed(*[NEW] * K, seed=one.seed)
        fan = TableFan(prompt_tokens=len(token_ids), answers=[known], encode=self.encode)
        self._fans.append(fan)
        return fan

    def step(self) -> None:
        for fan in self._fans:
            for index in fan.indices:
                fan.write(index, lines=1)
        self._fans = []


class Pool:
    """Gives every candidate the score 0.25, once the model was asked so often."""

    def __init__(self, model: Model, *, after: int) -> None:
        self._model = model
        self._after = after
        self._waiting: list[str] = []

    def submit(self, *, candidate_id: str, program: str, stage: int, order: int) -> None:
        self._waiting.append(candidate_id)

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        if len(self._model.asked) < self._after:
            return []
        ready, self._waiting = self._waiting, []
        return [(each, verdict(0.25)) for each in ready]


def verdict(score: float) -> Evaluation:
    return Evaluation(score=score, failure=None, metrics={"score": score})


def program(value: object) -> str:
    return f"def f(x):\n    return x * {value}\n"


def listed(*programs: object, seed: int = 0) -> str:
    """Return an answer with these programs; the numbers among them make one each."""
    entries = [
        {
            "code": each if isinstance(each, str) else program(f"{seed}.{place}"),
            "probability": 1 / len(programs),
        }
        for place, each in enumerate(programs)
    ]
    return json.dumps({"responses": entries})


def fresh(count: int, *, seed: int) -> str:
    return listed(*[NEW] * count, seed=seed)


def live(
    tmp_path: Path,
    model: Model,
    *changes: str,
    events: Sequence[Event] = (),
    dies_after: int | None = None,
    after: int = 0,
) -> list[Event]:
    """Return what a run has recorded at its end, or at its death after so many children.

    Args:
        tmp_path: for the timeline.
        model: that answers.
        changes: of the settings.
        events: that are recorded.
        dies_after: children.
        after: the pool's.
    """
    settings = config.resolve(
        [
            *("pipeline.speculate=false", "pipeline.adaptive=false", "width.policy=fixed"),
            *("search.parent.p_elite=1", "search.parent.p_uniform=0", f"search.k={K}"),
            *("search.operators.infill=0", "search.operators.verbalized=1", "islands.count=1"),
            *("prompts.history_tokens=0", "budget.seconds=null", *changes),
        ]
    )
    problem = dataclasses.replace(load_problem(Path(settings.problem)), entry_point="f")
    first = Verdict(candidate=INITIAL, evaluation=verdict(0.5), program="def f(x):\n    return x\n")
    known = [*events] or [Session(number=0, engine="0", fingerprint="f"), first]
    bell, deadline = threading.Event(), time.monotonic() + HANGS
    restored = restore(settings, problem, [_recorded(each) for each in known], model)

    def record(event: Event) -> None:
        if isinstance(event, Child) and len(_children(known)) == dies_after:
            raise Death
        known.append(event)
        restored.state.fold(_recorded(event))

    def is_late() -> bool:
        assert time.monotonic() < deadline
        return False

    parts: dict[str, Any] = {"model": model}
    operator = Verbalized(
        problem=problem, tokenizer=model, max_tokens=500, prompts=settings.prompts
    )
    pool = Pool(model, after=after)
    with Timeline(tmp_path / TIMELINE) as timeline:
        run = partial(
            evolve,
            syntax=Inline(),
            settings=settings,
            restored=restored,
            record=record,
            commit=lambda: None,
            operators={"verbalized": operator},
            evaluator=told_cascade(settings, problem, restored.state.history, pool),
            stopped=is_late,
            timeline=timeline,
            bell=bell,
            **parts,
        )
        if dies_after is None:
            run()
            history = replay([_recorded(each) for each in known], problem.direction)
            assert Account(settings.budget, history).is_closed and not history.pending
        else:
            with pytest.raises(Death):
                run()
    return known


def _recorded(event: Event) -> Recorded:
    return Recorded(session=0, elapsed=0.0, event=event)


def _children(events: Sequence[Event]) -> list[Child]:
    return [each for each in events if isinstance(each, Child)]


def of_call(events: Sequence[Event], iteration: int) -> list[Child]:
    """Return a call's children in the order of their indices."""
    return sorted(
        (each for each in _children(events) if each.iteration == iteration),
        key=lambda each: each.index,
    )


def brief(children: Sequence[Child]) -> list[tuple[str, int | None, str]]:
    """Return what each child was multiplied with, its rank, and why it was refused."""
    return [
        (
            (each.program.text if each.program else "").rpartition("* ")[2].strip(),
            each.rank,
            each.refusal or "",
        )
        for each in children
    ]


def _text(child: Child) -> str:
    return "" if child.program is None else child.program.text


def test_the_first_k_are_kept_fewer_are_accepted_and_too_few_asked_for_again(
    tmp_path: Path,
) -> None:
    answers = [
        fresh(6, seed=1),
        fresh(2, seed=2),
        *(fresh(1, seed=3), fresh(6, seed=4)),
        *('{"responses": []}', fresh(2, seed=5)),
        *(fresh(1, seed=6), "no JSON"),
        fresh(1, seed=7)[:-9],
    ]
    model = Model(answers)
    events = live(tmp_path, model, "budget.candidates=18")
    expected: list[list[tuple[str, int | None, str]]] = [
        [(f"1.{i}", i, "") for i in range(4)],
        [("2.0", 0, ""), ("2.1", 1, ""), ("", None, "absent"), ("", None, "absent")],
        [("3.0", 0, ""), ("4.0", 0, ""), ("4.1", 1, ""), ("4.2", 2, "")],
        [("", None, "absent"), ("5.0", 0, ""), ("5.1", 1, ""), ("", None, "absent")],
        [("6.0", 0, ""), *[("", None, "absent")] * 3],
    ]
    for iteration, each in enumerate(expected):
        assert brief(of_call(events, iteration)) == each
    calls = [each for each in events if isinstance(each, Call)]
    # The last call's first answer was cut off within its program, so it holds none.
    assert brief(of_call(events, 5))[0] == ("", None, "absent")
    again = [None, None, 3, 5, 7]
    numbers = [0, 1, 2, 4, 6, 8]
    for call, number, second in zip(calls, numbers, again, strict=False):
        assert model.asked[number].seed == call.seeds[0]
        assert second is None or model.asked[second].seed == call.seeds[1]
    assert {call.k for call in calls} == {K}


def test_each_answer_is_recorded_once_with_all_that_it_cost(tmp_path: Path) -> None:
    answers = [fresh(4, seed=1), fresh(1, seed=2), fresh(1, seed=3), "{", fresh(3, seed=4)]
    model = Model(answers)
    events = live(tmp_path, model, "budget.candidates=9")
    children = _children(events)
    assert len(model.asked) == 5  # nothing was asked but what has an answer here
    assert sorted(each.completion for each in children if each.completion) == sorted(answers)
    assert sum(each.generated_tokens for each in children) == sum(map(len, answers))
    (prompt,) = {each.prompt_tokens for each in events if isinstance(each, Call)}
    assert sum(each.prompt_tokens for each in children) == 5 * prompt
    assert sum(each.cached_prompt_tokens for each in children) == 5 * (prompt // 2)
    silent = [each for each in children if not each.completion]
    assert len(silent) == len(children) - 5
    assert {(each.completion_ids, each.llm_seconds, *each.missed) for each in silent} == {((), 0.0)}


def test_a_sibling_that_is_the_same_is_a_duplicate_and_a_broken_one_a_child(
    tmp_path: Path,
) -> None:
    same, spaced = program(7), "# the same\n" + program(7)
    model = Model([listed(same, spaced, "def f(x:", program("nothing"))])
    events = live(tmp_path, model, "budget.candidates=1")
    assert [(each.rank, each.refusal) for each in of_call(events, 0)] == [
        (0, None),
        (1, Refusal.DUPLICATE),
        (2, Refusal.UNPARSED),
        (3, Refusal.UNDEFINED),
    ]


def test_no_more_are_admitted_than_the_budget_has(tmp_path: Path) -> None:
    events = live(tmp_path, Model(), "budget.candidates=6")
    assert [each.refusal for each in of_call(events, 1)] == [None, None, *[Refusal.BUDGET] * 2]
    assert [each.rank for each in of_call(events, 1)] == [0, 1, 2, 3]


@pytest.mark.parametrize("overlap", ["true", "false"])
def test_a_run_that_died_between_siblings_reads_the_rest_from_the_answer_to_its_question(
    tmp_path: Path, overlap: str
) -> None:
    settings = ("budget.candidates=8", f"pipeline.overlap={overlap}")
    cut = live(tmp_path, Model([fresh(4, seed=1)]), *settings, dies_after=2)
    (call,) = (each for each in cut if isinstance(each, Call))
    model = Model([fresh(3, seed=2)])
    events = live(tmp_path, model, *settings, events=cut)
    assert brief(of_call(events, 0)) == [
        *(("1.0", 0, ""), ("1.1", 1, ""), ("2.2", 2, "")),
        ("", None, "absent"),
    ]
    assert model.asked[0].seed == call.seeds[0]
    assert [bool(each.completion) for each in of_call(events, 0)] == [True, False, True, False]


def test_a_run_that_died_before_the_second_answer_asks_for_both_again(tmp_path: Path) -> None:
    first = [fresh(1, seed=1), fresh(3, seed=2)]
    cut = live(tmp_path, Model(first), "budget.candidates=4", dies_after=1)
    model = Model([fresh(1, seed=1), fresh(3, seed=3)])
    events = live(tmp_path, model, "budget.candidates=4", events=cut)
    # What the first answer cost anew is recorded with the next child.
    assert brief(of_call(events, 0)) == [
        *(("1.0", 0, ""), ("", None, "absent")),
        *(("3.0", 0, ""), ("3.1", 1, "")),
    ]
    assert [each.completion for each in of_call(events, 0)][:3] == [
        *(fresh(1, seed=1), fresh(1, seed=1)),
        fresh(3, seed=3),
    ]


def test_guesses_show_all_that_an_answer_lists_and_ask_again_too(tmp_path: Path) -> None:
    answers = [fresh(4, seed=1), fresh(1, seed=2), listed(*[NEW] * 2, "def f(", seed=3)]
    events = live(
        tmp_path,
        Model(answers),
        *("budget.candidates=15", "prompts.history_tokens=2000"),
        *("pipeline.speculate=true", "pipeline.ahead=2"),
        after=4,
    )
    calls = {each.iteration: each for each in events if isinstance(each, Call)}
    assert [calls[i].guessed for i in range(3)] == [False, True, True]
    assert brief(of_call(events, 1)) == [
        *(("2.0", 0, ""), ("3.0", 0, ""), ("3.1", 1, "")),
        ("", 2, "unparsed"),
    ]
    assert calls[2].ahead == ("1.0", "1.1", "1.2")
    for each in ("0.0", "0.1", "0.2", "0.3", *calls[2].ahead):
        assert f"# Program {each}, score pending\n" in calls[2].prompt
    assert "3.1" in calls[2].prompt


def test_no_guess_begins_whose_children_the_budget_would_not_admit(tmp_path: Path) -> None:
    model = Model()
    events = live(
        tmp_path,
        model,
        *("budget.candidates=8", "pipeline.speculate=true", "pipeline.ahead=3"),
        after=2,
    )
    assert len(model.asked) == 2
    assert [each.guessed for each in events if isinstance(each, Call)] == [False, True]
    assert {each.refusal for each in _children(events)} == {None}

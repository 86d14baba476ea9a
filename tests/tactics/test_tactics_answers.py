"""The ideas of an answer, the question's prompt, and what tactics can't be combined with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inline import Inline
from words import STABLE, Words

from engine import config
from engine.beginning import _tactician
from engine.core import (
    Candidate,
    ChatFrame,
    Direction,
    Generation,
    Problem,
    Proposal,
    Tactics,
    UserError,
)
from engine.problem import load_problem, shipped
from engine.prompts import OPERATORS
from engine.prompts.chat import Rewrite
from engine.store import RunHistory
from engine.tactics.requests import LONGEST, TacticalRequests, ideas_of
from engine.timeline import TIMELINE, Timeline

PROGRAM = Candidate(id="p", program="def f(x):\n    return x\n", score=0.25)


@pytest.fixture(scope="module")
def problem() -> Problem:
    whole = load_problem(Path(shipped()["signal"]))
    return replace(whole, statement="Make f good.", entry_point="f")


@pytest.mark.parametrize(
    ("answer", "ideas"),
    [
        ("- one\n- two\n", ("one", "two")),
        ("Sure:\n1. one\n 2) two\n* three\n- four", ("one", "two", "three")),
        ("one\ntwo", ()),
        ("", ()),
        ("- " + "x" * 9999, ("x" * LONGEST,)),
        ("-\n- \n-one", ()),
    ],
)
def test_ideas_are_the_items_of_a_list(answer: str, ideas: tuple[str, ...]) -> None:
    assert ideas_of(answer, most=3) == ideas


def test_a_question_shows_the_programs_that_fit(problem: Problem) -> None:
    operator = Rewrite(
        problem=problem, tokenizer=Words(max_model_len=400), max_tokens=9, prompts=STABLE
    )
    long = replace(PROGRAM, id="long", program=PROGRAM.program + "# a" * 400)
    prompt = operator.question([long, PROGRAM], "What now?", max_tokens=50)
    assert prompt.shows == ("p",) and prompt.max_tokens == 50
    assert "Make f good." in prompt.text and "What now?" in prompt.text
    assert len(prompt.token_ids) + 50 <= 400


class Hand:
    """A decoder that keeps what it was given."""

    in_flight = 0

    def __init__(self) -> None:
        self.given: list[int] = []
        self.answer = ""

    def submit(self, call: int, **_: Any) -> None:
        self.given.append(call)

    def completed(self) -> list[tuple[int, Generation]]:
        """Answer everything."""
        generation = Generation(
            index=0,
            text=self.answer,
            token_ids=(1,),
            finish_reason="stop",
            prompt_tokens=1,
            cached_prompt_tokens=0,
            llm_seconds=0.0,
        )
        return [(call, generation) for call in self.given]


class Thinking(Words):
    """The tokenizer of a model that thinks before it answers."""

    def chat_frame(self, *, system: str) -> ChatFrame:
        frame = super().chat_frame(system=system)
        return replace(frame, closing=f"{frame.closing}<think>\n")


@pytest.fixture
def asking(problem: Problem, tmp_path: Path) -> Iterator[tuple[TacticalRequests, Hand]]:
    """Return requests of a search that wants tactics, of a model that thinks, and its decoder."""
    decoder: Any = Hand()
    search: Any = SimpleNamespace(wants_tactics=True, tried=(), best_of_all=lambda count: [PROGRAM])
    operator = Rewrite(problem=problem, tokenizer=Thinking(), max_tokens=9, prompts=STABLE)
    with Timeline(tmp_path / TIMELINE) as timeline:
        requests = TacticalRequests(
            settings=config.resolve(["search.operators.rewrite=1", "tactics.when=periodic"]),
            history=RunHistory(direction=Direction.MAXIMISE),
            operators={"rewrite": operator},
            block_size=16,
            decoder=decoder,
            syntax=Inline(),
            timeline=timeline,
            notify=lambda: None,
            search=search,
        )
        yield requests, decoder


def test_the_question_goes_out_only_where_the_run_may_ask(
    asking: tuple[TacticalRequests, Hand],
) -> None:
    requests, decoder = asking
    requests.send()  # as in a pause, and once the budget is spent
    assert decoder.given == []
    requests.ask()
    assert decoder.given == []  # before what is recorded is on disk
    requests.send()
    assert len(decoder.given) == 1
    requests.ask()
    requests.send()  # one at a time
    assert len(decoder.given) == 1


def test_what_the_model_thinks_of_is_no_idea(asking: tuple[TacticalRequests, Hand]) -> None:
    requests, decoder = asking
    requests.ask()
    requests.send()
    decoder.answer = "- a draft\n</think>\n- one\n- two"
    assert [*requests.received()] == []
    (tactics,) = requests.news()
    assert isinstance(tactics, Tactics)
    assert tactics.ideas == ("one", "two") and tactics.answer == decoder.answer


@pytest.mark.parametrize("name", ["rewrite", "diff", "verbalized"])
def test_a_call_is_shown_an_idea_as_a_quotation(problem: Problem, name: str) -> None:
    operator = OPERATORS.find(name, given="")(
        problem=problem, tokenizer=Words(), max_tokens=9, prompts=STABLE
    )
    proposal = Proposal(
        iteration=0, parent=PROGRAM, history=(), operator=name, k=2, seed=1, tactics="Use ```FFT"
    )
    text = operator.compose(proposal).text
    assert "A direction to try:\n````text\nUse ```FFT\n````\n" in text
    assert "direction" not in operator.compose(replace(proposal, tactics="")).text


@pytest.mark.parametrize(
    "arguments",
    [["search.operators.infill=1"], ["model=mutation"], ["method=pacevolve"]],
)
def test_tactics_needs_an_operator_that_asks_in_words(arguments: list[str]) -> None:
    with pytest.raises(UserError, match=r"tactics\.when is 'periodic'; it must be none with"):
        config.resolve([*arguments, "tactics.when=periodic"])


def test_a_repair_is_shown_no_idea() -> None:
    """It is asked to keep what the failed attempt tried, and its parent is that attempt's."""
    settings = config.resolve(["method=adaevolve", "search.operators.repair=0.5"])
    tactician = _tactician(settings, direction=Direction.MAXIMISE)
    assert tactician is not None
    tactician.take(("sort first",))
    assert tactician.idea_for("diff") == "sort first"
    assert tactician.idea_for("repair") == "" and not tactician.changes_the_best("repair")


def test_guesses_and_tactics_do_not_go_together() -> None:
    arguments = ["method=shinka", "pipeline.speculate=true", "islands.count=1"]
    with pytest.raises(UserError, match=r"pipeline\.speculate is True; it must be false with tac"):
        config.resolve(arguments)


def test_the_methods_that_have_it() -> None:
    ada = config.resolve(["method=adaevolve"]).tactics
    shinka = config.resolve(["method=shinka"]).tactics
    assert (ada.when, ada.window, ada.below, ada.ideas, ada.uses) == (
        "stagnation",
        10,
        0.12,
        3,
        2,
    )
    assert (shinka.when, shinka.window, shinka.ideas) == ("periodic", 10, 5)
    assert config.resolve(["method=adaevolve", "model=mutation"]).tactics.when == "none"


@pytest.mark.slow
def test_a_run_asks_records_and_goes_on(tmp_path: Path) -> None:
    from command import read_events, run

    done = run(
        *("method=adaevolve", "problem=uncertainty", "model.max_tokens=48", "tactics.window=1"),
        *("tactics.below=1", "tactics.tokens=48", "search.operators.infill=1"),
        *("budget.candidates=null", "budget.tokens=1200", "budget.seconds=null"),
        *(f"runs={tmp_path}", "name=guided"),
        scratch=tmp_path / "scratch",
    )
    assert done.returncode == 0, done.stderr
    found = read_events(tmp_path / "guided")
    assert found["tactics"] and found["tactics"][0]["number"] == 0
    again = run(f"resume={tmp_path / 'guided'}", scratch=tmp_path / "scratch")
    assert again.returncode == 0, again.stderr

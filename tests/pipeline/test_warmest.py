"""Choosing the warmest of near-equal parents: who is taken, what is reported, and when not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine import config
from engine.core import INITIAL, ChatFrame, Evaluation, Problem
from engine.pipeline.warmest import WarmestParent
from engine.problem import load_problem, shipped
from engine.prompts import Rewrite
from engine.search import Entry, Search

SETTINGS = config.resolve(
    [
        *("search.operators.infill=0", "search.operators.rewrite=1"),
        *("search.parent.p_elite=1.0", "search.parent.p_uniform=0.0"),
        *("prompts.layout=classic", "prompts.history_tokens=0", "prompts.align=false"),
    ]
)


class Model:
    """Has all prompts in its cache that show one of the warm programs."""

    max_model_len = 4096

    def __init__(self, *warm: str) -> None:
        self._warm = [self.encode(program) for program in warm]

    def encode(self, text: str) -> list[int]:
        return [hash(word) for word in text.split()]

    def chat_frame(self, *, system: str) -> ChatFrame:
        return ChatFrame(opening="<s> ", closing=" <a>", turn="<u> ")

    def cached_tokens(self, token_ids: Sequence[int]) -> int:
        ids = list(token_ids)
        warm = any(ids[i : i + len(each)] == each for each in self._warm for i in range(len(ids)))
        return len(ids) - 10 if warm else 3


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(Path(shipped()["signal"]))


def program(number: int) -> str:
    return f"def f(x):\n    return x * {number}\n"


def new_search(problem: Problem, *, islands: int) -> Search:
    return Search(
        settings=SETTINGS.search,
        width=SETTINGS.width,
        islands=replace(SETTINGS.islands, count=islands),
        prompts=SETTINGS.prompts,
        direction=problem.direction,
        seed=3,
        size=len,
    )


def chosen(
    problem: Problem, model: Model, *, scores: list[float], tolerance: float, elsewhere: int = 0
) -> Any:
    """Return what the search asks for on island 1, and what `WarmestParent` makes of it.

    The program numbered ``elsewhere``, if it is not the initial one, is on island 0.
    """
    search = new_search(problem, islands=2)
    for number, score in enumerate(scores):
        name = INITIAL if number == 0 else f"0.{number}"
        search.admit(
            Entry(
                id=name,
                program=program(number),
                iteration=0 if number else -1,
                index=number,
                island=int(number != elsewhere),
            )
        )
        search.tell(name, Evaluation(score=score, failure=None))
    operator = Rewrite(problem=problem, tokenizer=model, max_tokens=100, prompts=SETTINGS.prompts)
    warmest = WarmestParent(
        search=search,
        operators={"rewrite": operator},
        model=model,  # type: ignore[arg-type]
        tolerance=tolerance,
    )
    proposal = search.ask(1, island=1)
    return proposal, *warmest.choose(proposal)


SCORES = [0.0, 0.9, 1.0, 0.5]  # the best one, 0.2, is drawn


def test_a_near_equal_parent_with_a_cached_prompt_is_taken(problem: Problem) -> None:
    proposal, taken, preference = chosen(problem, Model(program(1)), scores=SCORES, tolerance=0.2)
    assert (proposal.parent.id, taken.parent.id) == ("0.2", "0.1")
    assert preference.drawn == "0.2"
    assert preference.score_given_up == pytest.approx(0.1)
    length = len(Model().encode(program(2)))
    assert preference.tokens_saved > length  # all of the prompt but 3 against 10 tokens
    # Everything else of the proposal is as it was.
    assert (taken.seed, taken.k, taken.operator) == (proposal.seed, proposal.k, "rewrite")


@pytest.mark.parametrize(
    ("warm", "tolerance"),
    [
        (1, 0.0),  # off
        (1, 0.05),  # cached, but not near
        (3, 0.2),
        (2, 0.2),  # the drawn one is the warmest
    ],
)
def test_else_the_drawn_parent_is_kept(problem: Problem, warm: int, tolerance: float) -> None:
    proposal, taken, preference = chosen(
        problem, Model(program(warm)), scores=SCORES, tolerance=tolerance
    )
    assert taken is proposal and preference is None


def test_a_program_of_another_island_is_no_rival(problem: Problem) -> None:
    model = Model(program(1))
    _, taken, _ = chosen(problem, model, scores=SCORES, tolerance=0.2)
    assert (taken.parent.id, taken.island) == ("0.1", 1)
    proposal, taken, preference = chosen(problem, model, scores=SCORES, tolerance=0.2, elsewhere=1)
    assert taken is proposal and proposal.parent.id == "0.2" and preference is None


def test_equal_warmth_changes_nothing(problem: Problem) -> None:
    proposal, taken, preference = chosen(problem, Model(), scores=SCORES, tolerance=1.0)
    assert taken is proposal and preference is None


def test_a_parent_that_was_not_told_is_refused(problem: Problem) -> None:
    search = new_search(problem, islands=1)
    search.admit(Entry(id=INITIAL, program=program(0)))
    search.tell(INITIAL, Evaluation(score=0.0, failure=None))
    with pytest.raises(ValueError, match=r"no valid candidate '9\.9'"):
        search.ask(0, island=0, parent_id="9.9")

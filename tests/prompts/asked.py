"""What operators are asked, in the tests of layouts and conversations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from words import STABLE, Words

from engine.core import (
    Attempt,
    Candidate,
    Evaluation,
    Failure,
    Part,
    Pending,
    Problem,
    Prompt,
    Proposal,
    Turn,
)
from engine.problem import load_problem, shipped
from engine.prompts import OPERATORS, Operator, make_operators
from engine.settings import Layout as LayoutName
from engine.settings import PromptSettings

CLASSIC = replace(STABLE, layout="classic")
LAYOUTS = get_args(LayoutName)
TRANSCRIPT = replace(STABLE, layout="transcript")
NAMES = ("rewrite", "diff", "crossover", "repair", "infill")


def layout_problem() -> Problem:
    return replace(load_problem(Path(shipped()["signal"])), statement="Make f good. ½")


def made(
    problem: Problem, prompts: PromptSettings, *, words: Words | None = None, max_tokens: int = 100
) -> dict[str, Operator]:
    return dict(
        make_operators(
            OPERATORS.names,
            problem=problem,
            tokenizer=words or Words(),
            max_tokens=max_tokens,
            prompts=prompts,
        )
    )


def program(number: int) -> str:
    return f"def f(x):\n    y = x + {number}\n    return y * {number}\n"


def candidate(number: int) -> Candidate:
    return Candidate(id=f"c{number}", program=program(number), score=number / 7)


def attempt(number: int) -> Attempt:
    evaluation = Evaluation(score=None, failure=Failure.TIMEOUT, message=f"late {number}")
    return Attempt(id=f"c{1000 + number}", program=program(1000 + number), evaluation=evaluation)


def proposal(
    parent: int, *history: int, operator: str = "rewrite", lineage: Sequence[Turn] = ()
) -> Proposal:
    return Proposal(
        iteration=3,
        parent=candidate(parent),
        history=tuple(map(candidate, history)),
        operator=operator,
        k=8,
        seed=1,
        lineage=tuple(lineage),
    )


def waiting(*numbers: int) -> tuple[Pending, ...]:
    return tuple(Pending(id=f"c{each}", program=program(each)) for each in numbers)


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two prompts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def before(prompt: Prompt, part: Part) -> int:
    """Return the number of tokens before the first block of a kind."""
    blocks = itertools.takewhile(lambda block: block.part is not part, prompt.blocks)
    return sum(len(block.token_ids) for block in blocks)


def parts(prompt: Prompt) -> list[str]:
    return [kind.value for kind, _ in itertools.groupby(block.part for block in prompt.blocks)]


def turn(
    asked: Candidate, *, answer: str, operator: str = "rewrite", failures: tuple[int, ...] = ()
) -> Turn:
    return Turn(
        candidate=asked,
        operator=operator,
        failures=tuple(map(attempt, failures)),
        answer=answer,
        answer_ids=tuple(range(90_000, 90_000 + len(answer.split()))),
    )


def lineage(*asked: int) -> list[Turn]:
    return [turn(candidate(number), answer=f"to {number}") for number in asked]

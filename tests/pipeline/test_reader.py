"""What a child is found to be, by a real search that knows the initial program."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from responses import receive

from engine import config
from engine.beginning import restore
from engine.core import (
    GIVEN_UP,
    INITIAL,
    Block,
    Candidate,
    Evaluation,
    Generation,
    Parsed,
    Part,
    Prompt,
    Refusal,
)
from engine.inference import MissLedger
from engine.pipeline import Reader, Request
from engine.pipeline.request import spread
from engine.problem import load_problem
from engine.prompts import Parsing
from engine.search.novelty.cosine import Cosine
from engine.store import Recorded, Session, Verdict
from engine.syntax import read

FIRST = "def f(x):\n    total = 0\n    for each in x:\n        total += each\n    return total\n"
COPY = FIRST.replace("total = 0", "total = 1")
OTHER = "def f(x):\n    return max(x) if len(x) > 3 else min(x, key=abs)\n"


class Echo:
    """An operator whose answers are programs."""

    longest_parent = 1000

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        program = read(generation.text) if generation.text else None
        return lambda: (Parsed(program=program),)


class Characters:
    """A tokenizer of characters."""

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        return [*map(ord, text)]


@pytest.fixture
def parts() -> dict[str, Any]:
    """A search that knows the initial program, and a call that asked for children of it."""
    settings = config.resolve([])
    problem = dataclasses.replace(load_problem(Path(settings.problem)), entry_point="f")
    first = Evaluation(score=0.5, failure=None, metrics={"score": 0.5})
    events = [
        Session(number=0, engine="0", fingerprint="f"),
        Verdict(candidate=INITIAL, evaluation=first, program=FIRST),
    ]
    recorded = [Recorded(session=0, elapsed=0.0, event=event) for event in events]
    tokenizer: Any = Characters()
    search = restore(settings, problem, recorded, tokenizer).state.search
    proposal = search.ask(3, island=0)
    block = Block(part=Part.TASK, text="x", token_ids=(1,))
    prompt = Prompt(blocks=(block,), stop=(), max_tokens=9)
    operator: Any = Echo()
    request = Request(
        ticket=1,
        proposal=proposal,
        operator=operator,
        prompt=prompt,
        sampling=spread(settings.search, proposal, prompt),
        numbers=range(proposal.k),
        misses=MissLedger(block_size=4).begin(prompt, island=0, compactions=0),
        known=2,
    )
    return {"search": search, "tokenizer": tokenizer, "request": request}


def generation(index: int, text: str) -> Generation:
    return Generation(
        index=index,
        text=text,
        token_ids=(1,),
        finish_reason="stop",
        prompt_tokens=1,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )


def reader(parts: dict[str, Any], *, longest: int = 1000, novelty: float | None = None) -> Reader:
    return Reader(
        search=parts["search"],
        tokenizer=parts["tokenizer"],
        longest_parent=longest,
        novelty=None if novelty is None else Cosine(threshold=novelty),
    )


@pytest.mark.parametrize(
    ("text", "novelty", "refusal"),
    [
        (OTHER, None, None),
        (COPY, None, None),
        (OTHER, 0.95, None),
        (COPY, 0.95, Refusal.SIMILAR),
        (FIRST, 0.95, Refusal.UNCHANGED),  # said by the first rule that it breaks
        (OTHER.replace("abs", "nothing"), 0.95, Refusal.UNDEFINED),
        ("", 0.95, Refusal.UNPARSED),
        (OTHER + "# EVOLVE-BLOCK-START\n# EVOLVE-BLOCK-END\n", None, Refusal.OUTSIDE),
        (OTHER + "#" * 1000, 0.95, Refusal.LONG),
    ],
    ids=["other", "copy", "other-novel", "copy-novel", "same", "name", "nothing", "fixed", "long"],
)
def test_a_child_is_refused_by_the_first_rule_that_it_breaks(
    parts: dict[str, Any], text: str, novelty: float | None, refusal: Refusal | None
) -> None:
    request = parts["request"]
    response = receive(request, generation(2, text))
    (child,) = reader(parts, novelty=novelty).children(request, response)
    program = read(text) if text else None
    assert (child.id, child.program, child.refusal) == ("3.2", program, refusal)


def test_a_child_that_the_engine_gave_up_is_not_what_its_program_says(
    parts: dict[str, Any],
) -> None:
    request = parts["request"]
    given_up = dataclasses.replace(generation(0, ""), finish_reason=GIVEN_UP)
    (child,) = reader(parts).children(request, receive(request, given_up))
    assert (child.refusal, child.program) == (Refusal.FAILED, None)

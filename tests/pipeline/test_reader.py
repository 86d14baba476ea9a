"""What a child is found to be, by a real search that knows the initial program."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine import config
from engine.core import (
    INITIAL,
    Block,
    Candidate,
    Evaluation,
    Generation,
    Parsed,
    Part,
    Pending,
    Prompt,
    Refusal,
)
from engine.embedding import NGramEmbedder
from engine.inference import MissLedger
from engine.pipeline import Flight, Reader
from engine.pipeline.flight import Standing, spread
from engine.problem import load_problem
from engine.restore import restore
from engine.search.novelty import Novelty
from engine.store import Recorded, Session, Verdict

FIRST = "def f(x):\n    total = 0\n    for each in x:\n        total += each\n    return total\n"
COPY = FIRST.replace("total = 0", "total = 1")
OTHER = "def f(x):\n    return max(x) if len(x) > 3 else min(x, key=abs)\n"


class Echo:
    """An operator whose answers are programs."""

    longest_parent = 1000

    def parse(
        self, *, parent: Candidate, prompt: Prompt, generation: Generation
    ) -> Sequence[Parsed]:
        return (Parsed(program=generation.text or None),)


class Characters:
    """A tokenizer of characters."""

    def encode(self, text: str) -> list[int]:
        return [*map(ord, text)]


@pytest.fixture
def parts() -> dict[str, Any]:
    """A search that knows the initial program, and a call that asked for children of it."""
    settings = config.resolve([])
    problem = dataclasses.replace(load_problem(Path(settings.problem)), entry_point="f")
    first = Evaluation(score=0.5, failure=None, metrics={"score": 0.5})
    events = [
        Session(number=0, engine="0", fingerprint="f"),
        Verdict.of(INITIAL, first, program=FIRST),
    ]
    recorded = [Recorded(session=0, elapsed=0.0, event=event) for event in events]
    tokenizer: Any = Characters()
    search = restore(settings, problem, recorded, tokenizer).state.search
    proposal = search.ask(3, island=0)
    block = Block(part=Part.TASK, text="x", token_ids=(1,))
    prompt = Prompt(blocks=(block,), stop=(), max_tokens=9)
    operator: Any = Echo()
    flight = Flight(
        proposal=proposal,
        operator=operator,
        prompt=prompt,
        sampling=spread(settings.search, proposal, prompt),
        numbers=range(proposal.k),
        misses=MissLedger(block_size=4).begin(prompt, island=0, compactions=0),
        known=2,
        ahead=(),
        standing=Standing.GUESSED,
    )
    return {"search": search, "tokenizer": tokenizer, "flight": flight}


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
        novelty=None if novelty is None else Novelty(embedder=NGramEmbedder(), threshold=novelty),
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
        (OTHER + "#" * 1000, 0.95, Refusal.LONG),
    ],
    ids=["other", "copy", "other-novel", "copy-novel", "same", "name", "nothing", "long"],
)
def test_a_child_is_refused_by_the_first_rule_that_it_breaks(
    parts: dict[str, Any], text: str, novelty: float | None, refusal: Refusal | None
) -> None:
    flight = parts["flight"]
    landing = flight.land(generation(2, text))
    (child,) = reader(parts, novelty=novelty).children(flight, landing)
    assert (child.id, child.program, child.refusal) == ("3.2", text or None, refusal)


def test_what_a_guess_will_bring_are_its_new_programs_in_their_order(
    parts: dict[str, Any],
) -> None:
    flight = parts["flight"]
    for index, text in ((3, COPY), (0, ""), (1, OTHER), (2, FIRST)):
        flight.land(generation(index, text))
    assert reader(parts).pending([flight]) == (
        Pending(id="3.1", program=OTHER),
        Pending(id="3.3", program=COPY),
    )
    assert reader(parts, novelty=0.95).pending([flight]) == (Pending(id="3.1", program=OTHER),)
    assert reader(parts).pending([]) == ()

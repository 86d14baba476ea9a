"""A request: what becomes of its children, and the events that record it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from responses import completion, receive

from engine import config
from engine.core import (
    INITIAL,
    Attempt,
    Block,
    Candidate,
    Evaluation,
    Failure,
    Generation,
    Miss,
    Parsed,
    Part,
    Prompt,
    Proposal,
    Refusal,
)
from engine.inference import CallMisses
from engine.pipeline import Request
from engine.pipeline.request import spread
from engine.prompts import Parsing
from engine.store import Call, Child
from engine.syntax import read

SETTINGS = config.resolve(["search.temperature_min=0.5", "search.temperature_max=1.0"]).search
PARENT = Candidate(id=INITIAL, program="x = 1\n", score=0.5)
PROPOSAL = Proposal(
    iteration=7,
    parent=PARENT,
    history=(),
    operator="echo",
    k=4,
    seed=11,
    island=2,
    rule="uniform",
)
PARTNER = Candidate(id="3.2", program="x = 3\n", score=0.25)
BROKEN = Attempt(
    id="4.0",
    program="x = 1 / 0\n",
    evaluation=Evaluation(score=None, failure=Failure.ERROR, message="no"),
)
PROMPT = Prompt(
    blocks=(
        Block(part=Part.TASK, text="do ", token_ids=(1, 2), shows=("6.0", INITIAL)),
        Block(part=Part.ASK, text="it", token_ids=(3,), shows=("2.1", "6.0")),
    ),
    stop=("\n\n",),
    max_tokens=9,
    banned=(5,),
    grammar="root ::= x",
)


class Echo:
    """An operator that finds what begins with ``done`` complete."""

    longest_parent = 100

    def compose(self, proposal: Proposal) -> Prompt:
        return PROMPT

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        return lambda: (Parsed(program=read(generation.text)),)

    def is_complete(self, *, parent: Candidate, prompt: Prompt, text: str) -> bool:
        assert (parent, prompt) == (PARENT, PROMPT)
        return text.startswith("done")


def request(**changes: Any) -> Request:
    parts: dict[str, Any] = {
        "ticket": 1,
        "proposal": PROPOSAL,
        "operator": Echo(),
        "prompt": PROMPT,
        "sampling": spread(SETTINGS, PROPOSAL, PROMPT),
        "numbers": range(4),
        "misses": CallMisses(reasons=[Miss.COLD, Miss.NEW, Miss.ALIGNMENT], starts=[]),
        "known": 23,
    }
    return Request(**parts | changes)


def test_temperatures_are_spread_evenly_and_seeds_are_the_proposals() -> None:
    four = spread(SETTINGS, PROPOSAL, PROMPT)
    assert [each.temperature for each in four] == pytest.approx([1 / 2, 2 / 3, 5 / 6, 1])
    assert len({each.seed for each in four}) == 4
    assert {(each.stop, each.max_tokens, each.banned, each.grammar) for each in four} == {
        (("\n\n",), 9, (5,), "root ::= x")
    }
    assert spread(SETTINGS, PROPOSAL, PROMPT) == four
    # The first seeds are the same for another K, so that a call may be asked for again by halves.
    more = spread(SETTINGS, replace(PROPOSAL, k=6), PROMPT)
    assert [each.seed for each in more][:4] == [each.seed for each in four]
    other = spread(SETTINGS, replace(PROPOSAL, seed=12), PROMPT)
    assert not {each.seed for each in other} & {each.seed for each in four}
    (alone,) = spread(SETTINGS, replace(PROPOSAL, k=1), PROMPT)
    assert alone.temperature == 0.75


def test_it_counts_its_children_and_keeps_their_responses() -> None:
    call = request()
    for index in (2, 0, 3, 1):
        assert call.ended is None
        receive(call, completion(index))
    assert call.left == 0
    assert [response.children for response in call.responses] == [(2,), (0,), (3,), (1,)]
    assert call.ended is not None and call.ended >= call.began
    assert call.seconds == call.ended - call.began
    part = request(numbers=[1, 3])
    assert part.left == 2


def test_the_responses_of_one_that_was_dropped_are_not_read() -> None:
    call = request(is_dropped=True)
    assert receive(call, completion(2)).parsed == ()
    assert call.left == 3


def test_the_operator_says_when_a_child_is_over() -> None:
    assert request().is_over("done\n")
    assert not request().is_over("good\n")


def test_a_completion_is_cut_off_if_it_is_ended_before_its_program_is_complete() -> None:
    def is_cut_off(text: str, reason: str) -> bool:
        call = request()
        return call.is_cut_off(receive(call, completion(0, text=text, finish_reason=reason)))

    assert is_cut_off("good\n", "abort") and is_cut_off("", "abort")
    assert not is_cut_off("done\n", "abort")  # ended early, with its program
    assert not is_cut_off("good\n", "stop") and not is_cut_off("good\n", "length")


def test_the_event_of_a_child() -> None:
    call = request(numbers=[1, 3])  # of a call that a death cut short
    child = call.child(receive(call, completion(1)), 3, program=read("y = 2\n"), refusal=None)
    assert child == Child(
        id="7.3",
        iteration=7,
        index=3,
        parent=INITIAL,
        operator="echo",
        completion="y = 2\n",
        completion_ids=(4, 5, 6),
        finish_reason="stop",
        program=read("y = 2\n"),
        refusal=None,
        prompt_tokens=3,
        cached_prompt_tokens=1,
        llm_seconds=0.25,
        missed={Miss.NEW: 1, Miss.ALIGNMENT: 1},
    )
    nothing = completion(0, text="", token_ids=(), prompt_tokens=0, cached_prompt_tokens=0)
    aborted = call.child(receive(call, nothing), 1, program=None, refusal=Refusal.UNPARSED)
    assert (aborted.id, aborted.refusal, aborted.missed) == ("7.1", Refusal.UNPARSED, {})


def test_the_event_of_a_call() -> None:
    sampling = spread(SETTINGS, PROPOSAL, PROMPT)
    expected = Call(
        iteration=7,
        island=2,
        parent=INITIAL,
        rule="uniform",
        shown=("6.0", "2.1"),
        operator="echo",
        k=4,
        known=23,
        prompt="do it",
        prompt_tokens=3,
        temperatures=tuple(each.temperature for each in sampling),
        seeds=tuple(each.seed for each in sampling),
    )
    assert request().call() == expected
    more = request(proposal=replace(PROPOSAL, partner=PARTNER, repairs=BROKEN)).call()
    assert more == replace(expected, partner="3.2", repairs="4.0")

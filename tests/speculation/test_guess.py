"""A guess: what it does for, and the events that record it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from responses import completion, receive

from engine import config
from engine.core import (
    INITIAL,
    Attempt,
    Candidate,
    Evaluation,
    Failure,
    Generation,
    Parsed,
    Prompt,
    Proposal,
)
from engine.inference import CallMisses
from engine.pipeline import Request
from engine.pipeline.request import spread
from engine.prompts import Parsing
from engine.speculation.calls import Guess
from engine.store import GivenUp
from engine.syntax import read

PARENT = Candidate(id=INITIAL, program="x = 1\n", score=0.5)
PARTNER = Candidate(id="3.2", program="x = 3\n", score=0.25)
BROKEN = Attempt(
    id="4.0",
    program="x = 1 / 0\n",
    evaluation=Evaluation(score=None, failure=Failure.ERROR, message="no"),
)
PROPOSAL = Proposal(
    iteration=7, parent=PARENT, history=(), operator="lines", k=4, seed=11, island=2, rule="odd"
)


class Lines:
    """An operator whose answers hold a program a line."""

    longest_parent = 100

    def stance(self, rule: str) -> str:
        return "Look around." if rule == "wide" else ""

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        return lambda: [Parsed(program=read(line)) for line in generation.text.splitlines()]


def guess(proposal: Proposal = PROPOSAL, *, at_once: int = 1) -> Guess:
    prompt = Prompt(blocks=(), stop=(), max_tokens=9, schema="{}", at_once=at_once)
    operator: Any = Lines()
    request = Request(
        ticket=1,
        proposal=proposal,
        operator=operator,
        prompt=prompt,
        sampling=spread(config.resolve([]).search, proposal, prompt),
        numbers=range(proposal.k),
        misses=CallMisses(reasons=[], starts=[]),
        known=23,
    )
    return Guess(request=request, ahead=("6.0", "6.1"))


def test_it_comes_true_by_its_parent_and_operator() -> None:
    one = guess()
    assert one.comes_true(replace(PROPOSAL, k=9, history=(PARENT,)))
    assert one.comes_true(replace(PROPOSAL, parent=replace(PARENT)))
    assert not one.comes_true(replace(PROPOSAL, parent=replace(PARENT, id="3.1")))
    assert not one.comes_true(replace(PROPOSAL, operator="other"))
    assert not one.comes_true(replace(PROPOSAL, partner=PARTNER))
    assert not one.comes_true(replace(PROPOSAL, repairs=BROKEN))
    crossed = guess(replace(PROPOSAL, partner=PARTNER))
    assert crossed.comes_true(replace(PROPOSAL, partner=PARTNER, k=9))
    assert not crossed.comes_true(replace(PROPOSAL, partner=PARENT))
    repaired = guess(replace(PROPOSAL, repairs=BROKEN))
    assert repaired.comes_true(replace(PROPOSAL, repairs=BROKEN))
    assert not repaired.comes_true(replace(PROPOSAL, repairs=replace(BROKEN, id="4.1")))


def test_the_rule_counts_only_where_the_prompt_speaks_of_it() -> None:
    one, wide = guess(), guess(replace(PROPOSAL, rule="wide"))
    assert one.comes_true(replace(PROPOSAL, rule="even"))
    assert not one.comes_true(replace(PROPOSAL, rule="wide"))
    assert wide.comes_true(replace(PROPOSAL, rule="wide", k=9))
    assert not wide.comes_true(PROPOSAL)


def test_its_call_says_that_it_was_guessed_and_what_it_showed_ahead_of_the_log() -> None:
    one = guess()
    assert one.call() == replace(one.request.call(), guessed=True, ahead=("6.0", "6.1"))


def test_it_counts_the_children_that_are_back() -> None:
    one, listed = guess(), guess(at_once=4)
    assert one.children == 0
    receive(one.request, completion(2))
    receive(listed.request, completion(0, "a\nb\n"))
    assert (one.children, listed.children) == (1, 4)  # those that a list does not hold are absent


def test_what_it_cost_when_it_is_given_up() -> None:
    one = guess()
    receive(one.request, completion(0))
    one.request.is_dropped = True
    receive(one.request, completion(3, token_ids=(4,), cached_prompt_tokens=2, llm_seconds=0.5))
    for index in (1, 2):
        nothing = {"token_ids": (), "prompt_tokens": 0, "cached_prompt_tokens": 0}
        receive(one.request, completion(index, **nothing, llm_seconds=0.25 * (2 - index)))
    assert one.request.left == 0
    assert one.given_up(attempt=2) == GivenUp(
        iteration=7,
        attempt=2,
        island=2,
        parent=INITIAL,
        generated_tokens=4,
        prompt_tokens=6,
        cached_prompt_tokens=3,
        llm_seconds=1.0,
    )


def test_what_it_cost_counts_both_answers_of_a_list() -> None:
    one = guess(at_once=4)
    receive(one.request, completion(0, "a\n"))
    assert one.request.asks_again
    one.request.is_dropped = True
    receive(one.request, completion(0, "b\nc\nd\n", finish_reason="abort"))
    cost = one.given_up(attempt=0)
    assert (cost.generated_tokens, cost.prompt_tokens, cost.llm_seconds) == (6, 6, 0.5)

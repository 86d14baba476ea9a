"""Which children a completion makes: one, or those of an answer that lists several programs."""

from __future__ import annotations

from typing import Any

import pytest
from responses import receive

from engine import config
from engine.core import (
    INITIAL,
    Candidate,
    Generation,
    Miss,
    Parsed,
    Prompt,
    Proposal,
    Refusal,
)
from engine.inference import CallMisses
from engine.pipeline import Request, Response
from engine.pipeline.request import FEWEST, allot, spread
from engine.prompts import Parsing
from engine.syntax import read

SETTINGS = config.resolve(["search.temperature_min=0.5", "search.temperature_max=1.0"]).search
PARENT = Candidate(id=INITIAL, program="x = 1\n", score=0.5)
PROPOSAL = Proposal(iteration=7, parent=PARENT, history=(), operator="lines", k=4, seed=11)
PROMPT = Prompt(blocks=(), stop=(), max_tokens=9, schema="{}", at_once=4)


class Lines:
    """An operator whose answers hold a program a line; the number of lines is its probability."""

    longest_parent = 100

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        lines = generation.text.splitlines()[: prompt.at_once]
        parsed = [Parsed(program=read(line), probability=1 / len(lines)) for line in lines]
        return lambda: parsed


def request(**changes: Any) -> Request:
    parts: dict[str, Any] = {
        "ticket": 1,
        "proposal": PROPOSAL,
        "operator": Lines(),
        "prompt": PROMPT,
        "sampling": spread(SETTINGS, PROPOSAL, PROMPT),
        "numbers": range(4),
        "misses": CallMisses(reasons=[Miss.COLD, Miss.NEW, Miss.ALIGNMENT], starts=[]),
        "known": 23,
    }
    return Request(**parts | changes)


def generation(text: str, reason: str = "stop") -> Generation:
    return Generation(
        index=0,
        text=text,
        token_ids=tuple(map(ord, text)),
        finish_reason=reason,
        prompt_tokens=3,
        cached_prompt_tokens=1,
        llm_seconds=0.25,
    )


def found(response: Response) -> dict[int, str | None]:
    """Return the program of each child that a completion makes; None for one that is absent."""
    parsed = {index: response.child(index) for index in response.children}
    return {index: None if each is None else each.program.text for index, each in parsed.items()}


@pytest.mark.parametrize(
    ("free", "first", "programs", "may", "expected"),
    [
        # The first answer.
        ([0, 1, 2, 3], 0, 4, True, ((0, 1, 2, 3), ())),
        ([0, 1, 2, 3], 0, 2, True, ((0, 1, 2, 3), ())),  # fewer are accepted
        ([0, 1, 2, 3], 0, 1, True, ((0,), (1, 2, 3))),
        ([0, 1, 2, 3], 0, 0, True, ((0,), (1, 2, 3))),  # its cost is recorded with one
        ([0, 1, 2, 3], 0, 0, False, ((0, 1, 2, 3), ())),
        ([0], 0, 0, True, ((0,), ())),  # no other one could make a child
        # After a death: some children are recorded.
        ([2, 3], 0, 4, True, ((2, 3), ())),
        ([1, 2, 3], 0, 1, True, ((1,), (2, 3))),
        ([3], 0, 1, True, ((3,), ())),
        # The second answer.
        ([1, 2, 3], 1, 4, False, ((1, 2, 3), ())),
        ([1, 2, 3], 1, 0, False, ((1, 2, 3), ())),
    ],
)
def test_an_answer_makes_the_children_of_its_programs_and_the_last_one_all_the_rest(
    free: list[int],
    first: int,
    programs: int,
    may: bool,
    expected: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    assert FEWEST == 2
    assert allot(free, first=first, programs=programs, may_ask_again=may) == expected


def test_a_call_has_two_answers_at_one_temperature_for_a_list_and_else_one_a_child() -> None:
    two = spread(SETTINGS, PROPOSAL, PROMPT)
    assert [(each.temperature, each.schema) for each in two] == [(0.75, "{}")] * 2
    assert len({each.seed for each in two}) == 2
    assert request().unsent == two[:1]
    assert request().call().seeds == tuple(each.seed for each in two)


def test_more_programs_than_children_are_left_out_and_fewer_leave_some_absent() -> None:
    for text, programs in (("abcdef", "abcd"), ("abc", "abc")):
        call = request()
        response = receive(call, generation("\n".join(text)))
        assert found(response) == dict(zip(range(4), [*programs, None], strict=False))
        assert call.left == 0 and not call.asks_again and call.ended is not None


def test_an_answer_with_too_few_is_asked_for_again_once() -> None:
    call = request()
    assert found(receive(call, generation("a"))) == {0: "a"}
    assert call.asks_again and call.left == 1 and call.ended is None
    assert call.unsent == call.sampling[1:]
    second = receive(call, generation("b"))
    assert found(second) == {1: "b", 2: None, 3: None}
    assert (call.left, call.asks_again) == (0, False)


def test_an_answer_without_any_takes_one_child_and_the_next_has_the_rest() -> None:
    call = request()
    assert found(receive(call, generation(""))) == {0: None}
    assert found(receive(call, generation("a\nb\nc\nd"))) == {1: "a", 2: "b", 3: "c"}


def test_what_was_ended_or_dropped_is_not_asked_for_again() -> None:
    for call, reason in ((request(), "abort"), (request(is_dropped=True), "stop")):
        response = receive(call, generation("a", reason))
        assert response.children == (0, 1, 2, 3)
        assert (call.left, call.asks_again) == (0, False)
    cut_off = request()
    receive(cut_off, generation("a", "length"))
    assert cut_off.asks_again


def test_what_a_death_left_out_has_the_programs_of_its_ranks() -> None:
    assert found(receive(request(numbers=[2, 3]), generation("a\nb\nc"))) == {2: "c", 3: None}


def test_the_completion_and_its_cost_are_recorded_once() -> None:
    call = request()
    first = receive(call, generation("a"))
    second = receive(call, generation("b\nc"))
    children = [
        call.child(response, index, program=read(""), refusal=None)
        for response in (first, second)
        for index in response.children
    ]
    assert [each.id for each in children] == ["7.0", "7.1", "7.2", "7.3"]
    assert [each.completion for each in children] == ["a", "b\nc", "", ""]
    assert [each.generated_tokens for each in children] == [1, 3, 0, 0]
    assert [each.prompt_tokens for each in children] == [3, 3, 0, 0]
    assert [each.cached_prompt_tokens for each in children] == [1, 1, 0, 0]
    assert [each.llm_seconds for each in children] == [0.25, 0.25, 0.0, 0.0]
    assert [sum(each.missed.values()) for each in children] == [2, 2, 0, 0]
    assert [each.rank for each in children] == [0, 0, 1, None]
    assert [each.probability for each in children] == [1, 0.5, 0.5, None]
    absent = call.child(second, 3, program=None, refusal=Refusal.ABSENT)
    assert (absent.refusal, absent.finish_reason) == (Refusal.ABSENT, "stop")


def test_a_single_child_is_its_answers_first_program() -> None:
    prompt = Prompt(blocks=(), stop=(), max_tokens=9, schema="{}")
    (sampling,) = spread(SETTINGS, Proposal(**_alone()), prompt)
    for text, expected in (("a", "a"), ("", None)):
        call = request(
            proposal=Proposal(**_alone()), prompt=prompt, sampling=[sampling], numbers=[0]
        )
        response = receive(call, generation(text))
        assert found(response) == {0: expected}
        assert call.left == 0 and not call.asks_again
        assert call.child(response, 0, program=None, refusal=None).rank is None


def _alone() -> dict[str, Any]:
    return {
        "iteration": 7,
        "parent": PARENT,
        "history": (),
        "operator": "lines",
        "k": 1,
        "seed": 11,
    }

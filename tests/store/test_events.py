"""Events as JSON and back: nothing is lost, to the last digit and letter."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core import (
    Advice,
    Consultation,
    Evaluation,
    Failure,
    Idea,
    Miss,
    Novelty,
    Program,
    Question,
    Refusal,
    SwitchedOff,
)
from engine.store import Call, Child, Event, GivenUp, Hint, Session, Verdict
from engine.store.form import decode, encode

# A lone surrogate can't come from a tokenizer or from a process's output, so none is tried.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
floats = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 2**63)
programs = st.builds(
    Program,
    text=texts,
    key=texts,
    undefined=st.lists(texts).map(tuple),
    nodes=counts,
    depth=counts,
    loops=counts,
    branches=counts,
    calls=counts,
)
sessions = st.builds(Session, number=counts, engine=texts, fingerprint=texts)
calls = st.builds(
    Call,
    iteration=counts,
    island=counts,
    parent=texts,
    rule=texts,
    shown=st.lists(texts).map(tuple),
    operator=texts,
    k=counts,
    known=counts,
    ahead=st.lists(texts).map(tuple),
    guessed=st.booleans(),
    prompt=texts,
    prompt_tokens=counts,
    temperatures=st.lists(floats).map(tuple),
    seeds=st.lists(counts).map(tuple),
    partner=st.none() | texts,
    repairs=st.none() | texts,
)
children = st.builds(
    Child,
    id=texts,
    iteration=counts,
    index=counts,
    parent=texts,
    operator=texts,
    completion=texts,
    completion_ids=st.lists(st.integers(0, 2**31)).map(tuple),
    finish_reason=texts,
    program=st.none() | programs,
    refusal=st.none() | st.sampled_from(Refusal),
    prompt_tokens=counts,
    cached_prompt_tokens=counts,
    missed=st.dictionaries(st.sampled_from(Miss), counts),
    llm_seconds=floats,
    rank=st.none() | counts,
    probability=st.none() | st.floats(0, 1),
)
evaluations = st.builds(
    Evaluation,
    score=st.none() | floats,
    failure=st.none() | st.sampled_from(Failure),
    message=texts,
    seconds=floats,
    peak_bytes=counts,
    metrics=st.dictionaries(texts, st.floats(allow_nan=False)),
    artifacts=st.dictionaries(texts, texts | st.sampled_from(["null", "nan", "1.5"])),
)
verdicts = st.builds(
    Verdict,
    candidate=texts,
    evaluation=evaluations,
    program=st.none() | texts | st.sampled_from(["null", "nan", "1.5"]),
    cell=st.none() | st.lists(counts).map(tuple),
)
screens_off = st.builds(
    SwitchedOff, stage=texts, iteration=counts, correlation=floats, error=floats, pairs=counts
)
ids = st.lists(st.integers(0, 2**31)).map(tuple)
consultations = st.builds(
    Consultation,
    question=st.sampled_from(Question),
    answer=texts,
    answer_ids=ids,
    finish_reason=texts,
    logprobs=st.lists(floats).map(tuple),
    prompt_tokens=counts,
    cached_prompt_tokens=counts,
    llm_seconds=floats,
    missed=st.dictionaries(st.sampled_from(Miss), counts),
    temperature=floats,
    shared=counts,
    own_ids=ids,
    grammar=st.none() | texts,
)
advice = st.builds(
    Advice,
    child=texts,
    idea=st.none() | texts,
    experiment=texts,
    consultations=st.lists(consultations, max_size=3).map(tuple),
    unread=st.none() | st.sampled_from(Question),
    outage=st.none() | texts,
    endpoint_tokens=counts,
)
ideas = st.builds(
    Idea,
    child=texts,
    number=counts,
    hypothesis=texts,
    reasoning=texts,
    novelty=st.sampled_from(Novelty),
    of=st.none() | texts,
)
given_up = st.builds(
    GivenUp,
    iteration=counts,
    attempt=counts,
    island=counts,
    parent=texts,
    generated_tokens=counts,
    prompt_tokens=counts,
    cached_prompt_tokens=counts,
    llm_seconds=floats,
)

hints = st.builds(Hint, number=counts, text=texts)


@given(sessions | calls | children | verdicts | screens_off | given_up | advice | ideas | hints)
def test_an_event_comes_back_as_it_was(event: Event) -> None:
    text = encode(event)

    def refuse(word: str) -> float:
        raise AssertionError(f"{word} is no JSON")

    assert isinstance(json.loads(text, parse_constant=refuse), dict)
    again = decode(event.KIND, text)
    assert again == event
    assert encode(again) == text


def verdict(**changes: object) -> Verdict:
    plain = Evaluation(score=0.1 + 0.2, failure=None, metrics={"score": 0.3})
    return Verdict(candidate="1.0", evaluation=dataclasses.replace(plain, **changes))


def test_digits_and_metrics_that_are_not_finite_survive() -> None:
    metrics = {"a": math.inf, "b": -math.inf, "c": math.nan, "d": 5e-324, "e": 0.1 + 0.2}
    again = decode("verdict", encode(verdict(metrics=metrics)))
    assert isinstance(again, Verdict)
    assert again.score == 0.30000000000000004
    assert {name: repr(value) for name, value in again.evaluation.metrics.items()} == {
        name: repr(value) for name, value in metrics.items()
    }


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_not_written(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode(verdict(score=value))


def test_an_evaluation_comes_back_from_its_event() -> None:
    for evaluation in (
        Evaluation(score=1.5, failure=None, metrics={"score": 1.5}, seconds=0.25, peak_bytes=7),
        Evaluation(
            score=None, failure=Failure.MEMORY, message="½ too much", artifacts={"stdout": "\0"}
        ),
    ):
        event = decode(
            "verdict", encode(Verdict(candidate="1.2", evaluation=evaluation, program="x = 1\n"))
        )
        assert isinstance(event, Verdict)
        assert event.evaluation == evaluation
        assert (event.subject, event.program) == ("1.2", "x = 1\n")


def test_a_guess_may_be_given_up_for_the_same_iteration_again_and_again() -> None:
    lost = GivenUp(
        iteration=12,
        attempt=0,
        island=1,
        parent="3.4",
        generated_tokens=100,
        prompt_tokens=900,
        cached_prompt_tokens=800,
        llm_seconds=0.1 + 0.2,
    )
    again = dataclasses.replace(lost, attempt=1)
    assert (lost.subject, again.subject) == ("12.0", "12.1")
    assert decode("given_up", encode(again)) == again


def without(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("verdicts", lambda fields: fields),
        ("session", lambda fields: fields),
        ("given_up", lambda fields: fields),
        ("verdict", lambda fields: [fields]),
        ("verdict", lambda fields: fields | {"more": 1}),
        ("verdict", lambda fields: without(fields, "candidate")),
        ("verdict", lambda fields: without(fields, "cell")),
        ("verdict", lambda fields: fields | {"cell": 1}),
        *[
            ("verdict", lambda fields, c=change: fields | {"evaluation": c(fields["evaluation"])})
            for change in (
                lambda evaluation: None,
                lambda evaluation: evaluation | {"more": 1},
                lambda evaluation: without(evaluation, "failure"),
                lambda evaluation: without(evaluation, "message"),
                lambda evaluation: evaluation | {"failure": "bad luck"},
                lambda evaluation: evaluation | {"metrics": {"a": "many"}},
                lambda evaluation: evaluation | {"metrics": {"a": None}},
            )
        ],
    ],
)
def test_what_is_no_event_is_an_error(kind: str, change: Callable[[dict[str, Any]], Any]) -> None:
    body = json.dumps(change(json.loads(encode(verdict()))))
    with pytest.raises((KeyError, ValueError)):
        decode(kind, body)

"""Answers that the real engine holds to a JSON schema, and a run whose calls are such answers."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from inline import Inline
from looping import evolve

from engine import config
from engine.beginning import restore, told_cascade
from engine.core import INITIAL, Candidate, Evaluation, Generation, Problem, Prompt, Proposal
from engine.inference import LanguageModel, Sampling
from engine.problem import load_problem, shipped
from engine.prompts.verbalized import Verbalized, responses
from engine.store import Call, Child, Event, Recorded, Session, Verdict
from engine.timeline import TIMELINE, Timeline

FIRST = "def f(x):\n    return x\n"
K = 3


@pytest.fixture(scope="module")
def problem() -> Problem:
    whole = load_problem(Path(shipped()["signal"]))
    return replace(whole, statement="Make f larger.", entry_point="f")


def operator(problem: Problem, model: LanguageModel, *, max_tokens: int) -> Verbalized:
    prompts = config.resolve(["prompts.history_tokens=0"]).prompts
    return Verbalized(problem=problem, tokenizer=model, max_tokens=max_tokens, prompts=prompts)


def answers(
    model: LanguageModel, prompt: Prompt, schema: str | None, *, first: int = 0
) -> list[Generation]:
    sampling = [
        Sampling(temperature=0.7, seed=seed, stop=(), max_tokens=prompt.max_tokens, schema=schema)
        for seed in range(first, first + 4)
    ]
    return list(model.fanout(token_ids=prompt.token_ids, sampling=sampling))


def answers_with_an_end(model: LanguageModel, prompt: Prompt) -> list[Generation]:
    """Answers of which one is not cut off; which seed writes it differs from CPU to CPU."""
    found: list[Generation] = []
    for first in range(0, 40, 4):
        found += answers(model, prompt, prompt.schema, first=first)
        if any(each.finish_reason == "stop" for each in found):
            break
    return found


def test_an_answer_follows_the_schema_up_to_its_end_or_to_where_it_is_cut_off(
    model: LanguageModel, problem: Problem
) -> None:
    parent = Candidate(id=INITIAL, program=FIRST, score=0.5)
    proposal = Proposal(iteration=0, parent=parent, history=(), operator="verbalized", k=K, seed=0)
    prompt = operator(problem, model, max_tokens=110).compose(proposal)
    assert prompt.schema is not None
    form = jsonschema.Draft202012Validator(json.loads(prompt.schema))
    short = replace(prompt, max_tokens=30)
    held = [*answers_with_an_end(model, prompt), *answers(model, short, prompt.schema)]
    assert {each.finish_reason for each in held} == {"stop", "length"}
    for each in held:
        listed = list(responses(each.text))
        if each.finish_reason == "stop":
            whole = json.loads(each.text)
            form.validate(whole)
            assert len(listed) == len(whole["responses"]) <= K
        else:
            assert "".join(each.text.split()).startswith('{"responses":[{"code":"')
    free = answers(model, short, None)
    assert not all(each.text.lstrip().startswith('{"responses"') for each in free)


class Pool:
    """Gives every candidate the same score at once."""

    def __init__(self) -> None:
        self._ready: list[str] = []

    def submit(self, *, candidate_id: str, program: str, stage: int, order: int) -> None:
        self._ready.append(candidate_id)

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        ready, self._ready = self._ready, []
        return [(each, verdict(0.25)) for each in ready]


def verdict(score: float) -> Evaluation:
    return Evaluation(score=score, failure=None, metrics={"score": score})


def test_a_run_goes_on_from_answer_to_answer(
    model: LanguageModel, problem: Problem, tmp_path: Path
) -> None:
    settings = config.resolve(
        [
            *("search.operators.infill=0", "search.operators.verbalized=1", f"search.k={K}"),
            *("width.policy=fixed", "prompts.history_tokens=0", "pipeline.speculate=false"),
            *("budget.candidates=null", "budget.seconds=null", "budget.tokens=300"),
        ]
    )
    first = Verdict(candidate=INITIAL, evaluation=verdict(0.5), program=FIRST)
    events: list[Event] = [Session(number=0, engine="0", fingerprint="f"), first]
    recorded = [Recorded(session=0, elapsed=0.0, event=each) for each in events]
    restored = restore(settings, problem, recorded, model)
    bell = threading.Event()

    def record(event: Event) -> None:
        events.append(event)
        restored.state.fold(Recorded(session=0, elapsed=0.0, event=event))

    parts: dict[str, Any] = {
        "evaluator": told_cascade(settings, problem, restored.state.history, Pool())
    }
    with Timeline(tmp_path / TIMELINE) as timeline:
        evolve(
            syntax=Inline(),
            settings=settings,
            restored=restored,
            record=record,
            commit=lambda: None,
            operators={"verbalized": operator(problem, model, max_tokens=40)},
            model=model,
            stopped=lambda: False,
            timeline=timeline,
            bell=bell,
            **parts,
        )
    calls = [each for each in events if isinstance(each, Call)]
    children = [each for each in events if isinstance(each, Child)]
    assert len(calls) > 1 and len(children) == K * len(calls)
    assert sum(each.generated_tokens for each in children) >= 300
    for each in children:
        assert each.generated_tokens <= 40 * K
        assert each.rank is None or each.rank < K
        if each.completion:
            assert each.prompt_tokens == calls[each.iteration].prompt_tokens

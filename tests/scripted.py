"""A run with several answers a child where a script stands for the model, and answers by what it is
asked: one with an advisor, or with guidance.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inline import Inline
from looping import evolve
from table_fan import TableFan
from words import Words

from engine import config
from engine.advisor import advised
from engine.beginning import restore, told_cascade
from engine.core import INITIAL, Evaluation, Failure, Generation, Problem
from engine.guidance import guided
from engine.inference import EngineLoad, Sampling
from engine.problem import load_problem
from engine.prompts import Operator
from engine.prompts.chat import Rewrite
from engine.settings import RunSettings
from engine.store import Call, Child, Event, Recorded, RunHistory, Session, Verdict
from engine.timeline import TIMELINE, Timeline

ARGUMENTS = (
    *("method=pacevolve", "learning=phase_adaptive", "search.k=4", "islands.count=1"),
    *("pipeline.overlap=true", "budget.candidates=20", "budget.seconds=null"),
    *("prompts.history_tokens=200", "prompts.growth_tokens=100", "model.max_tokens=300"),
    *("advisor.answer_tokens=256", "advisor.repository_tokens=400"),
)


def settings_of(*arguments: str) -> RunSettings:
    return config.resolve([*ARGUMENTS, *arguments])


def small_problem() -> Problem:
    whole = load_problem(Path(config.resolve([]).problem))
    return replace(whole, entry_point="f", stages=whole.stages[-1:], statement="Make f good.")


def kind_of(sampling: Sampling) -> str:
    """Return what a prompt asks for, by the grammar of its answer."""
    grammar = sampling.grammar or ""
    for kind in ("hypothesis", "refines", "experiment"):
        if kind in grammar:
            return kind
    return "program"


def numbers_of(grammar: str) -> list[int]:
    """Return the numbers that a grammar lets an answer name."""
    line = next(each for each in grammar.splitlines() if each.startswith("number ::="))
    return [int(number) for number in re.findall(r'"(\d+)"', line)]


def usual(sampling: Sampling) -> str:
    """Return an answer as it should be, which follows from the seed."""
    rng, kind = random.Random(sampling.seed), kind_of(sampling)
    if kind == "hypothesis":
        drafts = [
            {"hypothesis": f"Factor {rng.randrange(99)} helps.", "reasoning": "It was not tried."}
            for _ in range(3)
        ]
        return json.dumps({"ideas": drafts})
    if kind == "refines":
        number = rng.choice(numbers_of(sampling.grammar or ""))
        verdicts = [{"is": "new"}, {"is": "refines", "idea": number}]
        return json.dumps({"ideas": [*verdicts, {"is": "repeats", "idea": number}]})
    if kind == "experiment":
        number = rng.choice(numbers_of(sampling.grammar or ""))
        return json.dumps({"idea": number, "experiment": f"Multiply by {rng.randrange(999)}."})
    return f"```python\ndef f(x):\n    return x * {sampling.seed}\n```"


@dataclass(kw_only=True)
class Asked:
    """One prompt that the model was given."""

    text: str
    token_ids: tuple[int, ...]
    kind: str
    adapter: int
    sampling: tuple[Sampling, ...]


class ScriptFan(TableFan):
    """Children with log-probabilities."""

    def take(self) -> list[Generation]:
        return [
            replace(each, logprobs=tuple(-0.5 for _ in each.token_ids)) for each in super().take()
        ]


class ScriptModel(Words):
    """Answers by a script, and remembers what it was asked."""

    def __init__(self, answer: Callable[[Sampling], str] = usual, committed: Any = None) -> None:
        super().__init__(max_model_len=4096)
        self.asked: list[Asked] = []
        self._answer = answer
        self._committed = committed
        self._fans: list[TableFan] = []

    def fanout(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int = 0
    ) -> TableFan:
        assert len(token_ids) + max(each.max_tokens for each in sampling) <= self.max_model_len
        if self._committed is not None:
            assert any(isinstance(each, Call) for each in self._committed)
        self.asked.append(
            Asked(
                text=self.decode(token_ids),
                token_ids=tuple(token_ids),
                kind=kind_of(sampling[0]),
                adapter=adapter,
                sampling=tuple(sampling),
            )
        )
        fan = ScriptFan(
            prompt_tokens=len(token_ids),
            answers=[self._answer(each) for each in sampling],
            encode=self.encode,
        )
        self._fans.append(fan)
        return fan

    def step(self) -> None:
        self._fans = [fan for fan in self._fans if fan.indices]
        self._fans[0].write(self._fans[0].indices[0], lines=4)

    def load(self) -> EngineLoad:
        return EngineLoad(waiting=0, kv_usage=0.0)


@dataclass
class ScorePool:
    """Evaluators whose verdicts follow from the program alone."""

    ring: Callable[[], None]
    _waiting: list[tuple[str, Evaluation]] = field(default_factory=list)

    def submit(self, *, candidate_id: str, program: str, stage: int, order: int) -> None:
        score = random.Random(program).random()
        verdict = Evaluation(score=score, failure=None, metrics={"score": score})
        if score < 0.2:
            verdict = Evaluation(score=None, failure=Failure.ERROR, message="line 2: it failed")
        self._waiting.append((candidate_id, verdict))

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        done, self._waiting = self._waiting, []
        if done:
            self.ring()
        return done


class Death(Exception):
    """The process dies here."""


def beginning() -> list[Event]:
    first = Evaluation(score=0.5, failure=None, metrics={"score": 0.5})
    return [
        Session(number=0, engine="0", fingerprint="f"),
        Verdict(candidate=INITIAL, evaluation=first, program="def f(x):\n    return x\n"),
    ]


def go_on(
    settings: RunSettings,
    events: list[Event],
    *,
    model: ScriptModel | None = None,
    most: int = 10**9,
) -> ScriptModel:
    """Go on with the run recorded in ``events`` until it ends, or dies with ``most`` of them.

    Its operator is ``rewrite``, with an advisor or with guidance as the settings have it.
    """
    problem, model = small_problem(), model or ScriptModel()
    committed, bell = [*events], threading.Event()
    restored = restore(settings, problem, [*map(recorded, events)], model)

    def record(event: Event) -> None:
        if len(events) >= most:
            events[:] = committed
            raise Death
        events.append(event)
        restored.state.fold(recorded(event))

    def commit() -> None:
        committed.extend(events[len(committed) :])

    operator = Rewrite(
        problem=problem,
        tokenizer=model,
        max_tokens=settings.model.max_tokens,
        prompts=settings.prompts,
    )
    operators: Mapping[str, Operator] = {"rewrite": operator}
    if settings.advisor.enabled:
        operators = advised({"rewrite": operator}, settings.advisor)
    if settings.guidance.enabled:
        operators = guided({"rewrite": operator}, settings.guidance)
    parts: dict[str, Any] = {
        "model": model,
        "operators": operators,
        "evaluator": told_cascade(settings, problem, restored.state.history, ScorePool(bell.set)),
    }
    with tempfile.TemporaryDirectory() as folder, Timeline(Path(folder) / TIMELINE) as timeline:
        evolve(
            syntax=Inline(),
            settings=settings,
            restored=restored,
            record=record,
            commit=commit,
            stopped=lambda: False,
            timeline=timeline,
            bell=bell,
            **parts,
        )
    return model


def recorded(event: Event) -> Recorded:
    return Recorded(session=0, elapsed=0.0, event=event)


def history_of(events: Iterable[Event]) -> RunHistory:
    history = RunHistory(direction=small_problem().direction)
    for event in events:
        history.fold(recorded(event))
    return history


def children_of(events: Iterable[Event]) -> list[Child]:
    return [event for event in events if isinstance(event, Child)]

"""What the pool's tests share: runs that cost no model to make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from engine import config
from engine.core import INITIAL, Evaluation, Failure, Problem
from engine.problem import load_problem
from engine.store import Call, Child, Event, Fill, Session, Verdict, create_run
from engine.syntax import read

MakeRun = Callable[..., Path]


@pytest.fixture(scope="session")
def signal() -> Problem:
    return load_problem(Path(config.resolve(["problem=signal"]).problem))


@pytest.fixture
def make_run(tmp_path: Path, signal: Problem) -> MakeRun:
    def make(
        name: str,
        scores: Mapping[str, float | None],
        *,
        programs: Mapping[str, str] | None = None,
        fingerprint: str = "f",
        settings: tuple[str, ...] = (),
        fills: Mapping[str, bool] | None = None,
    ) -> Path:
        """Make a run with a candidate for each of ``scores``; None is a failure.

        Each of ``fills`` is a program that scores 0.95, and whether it may be a parent.
        """
        resolved = config.resolve(["problem=signal", *settings])
        initial = Evaluation(score=0.5, failure=None, metrics={"score": 0.5})
        events: list[Event] = [
            Session(number=0, engine="0", fingerprint=fingerprint),
            Verdict(candidate=INITIAL, evaluation=initial, program=signal.initial_program),
            _call(len(scores)),
        ]
        for index, (candidate, score) in enumerate(scores.items()):
            text = f"def {signal.entry_point}(x):\n    return x * {candidate}\n"
            if programs is not None and candidate in programs:
                text = programs[candidate]
            events += [_child(candidate, text, index), _verdict(candidate, score)]
        for number, (text, joins) in enumerate((fills or {}).items()):
            fill = _fill(number, text, joins=joins)
            events += [fill, _verdict(fill.id, 0.95)]
        create_run(
            tmp_path / "runs" / name,
            write_config=lambda path: config.save(resolved, path),
            events=events,
        )
        return tmp_path / "runs" / name

    return make


def _call(k: int) -> Call:
    return Call(
        iteration=0,
        island=0,
        parent=INITIAL,
        rule="elite",
        operator="infill",
        k=k,
        known=2,
        prompt="",
        prompt_tokens=1,
        temperatures=(1.0,) * k,
        seeds=(0,) * k,
    )


def _child(candidate: str, program: str, index: int) -> Child:
    return Child(
        id=candidate,
        iteration=0,
        index=index,
        parent=INITIAL,
        operator="infill",
        completion="",
        completion_ids=(),
        finish_reason="stop",
        program=read(program),
        refusal=None,
        prompt_tokens=1,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )


def _fill(number: int, text: str, *, joins: bool) -> Fill:
    program = read(text)
    assert program is not None
    return Fill(
        number=number,
        maker="mutation" if joins else "improvement",
        parent=INITIAL,
        island=0,
        sample=number,
        program=program,
        joins=joins,
    )


def _verdict(candidate: str, score: float | None) -> Verdict:
    failure = Failure.ERROR if score is None else None
    return Verdict(candidate=candidate, evaluation=Evaluation(score=score, failure=failure))

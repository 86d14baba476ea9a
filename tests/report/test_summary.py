"""A run's figures against sums worked out by hand, and the files that hold them."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from engine import config
from engine.budget import Limit
from engine.core import (
    INITIAL,
    Direction,
    Evaluation,
    Failure,
    KnownScore,
    Miss,
    Problem,
    Refusal,
    SwitchedOff,
    Update,
    UserError,
)
from engine.problem import load_problem
from engine.report import summarise, write_results
from engine.report.summary import PROBE
from engine.settings import RunSettings
from engine.store import (
    Call,
    Child,
    Event,
    GivenUp,
    Recorded,
    RunHistory,
    Session,
    Verdict,
)
from engine.syntax import read
from engine.timeline import TIMELINE, Activity, Timeline


@pytest.fixture(scope="module")
def settings() -> RunSettings:
    return config.resolve(
        [
            "islands.count=1",
            *("seed=3", "search.k=4", "budget.candidates=10", "budget.seconds=60.5"),
            *("budget.tokens=1000", "budget.patience=5", "budget.prices.prompt=1"),
            *("budget.prices.cached_prompt=0.25", "budget.prices.generated=10"),
        ]
    )


@pytest.fixture(scope="module")
def problem(settings: RunSettings) -> Problem:
    return load_problem(Path(settings.problem))


def child(index: int, refusal: Refusal | None, **tokens: float) -> Child:
    return Child(
        id=f"0.{index}",
        iteration=0,
        index=index,
        parent=INITIAL,
        operator="infill",
        completion="",
        completion_ids=(5,) * int(tokens["generated"]),
        finish_reason="stop",
        program=None if refusal is Refusal.UNPARSED else read(f"x = {index}  # ½\n"),
        refusal=refusal,
        prompt_tokens=100,
        cached_prompt_tokens=int(tokens["cached"]),
        llm_seconds=tokens["seconds"],
        missed={Miss.ALIGNMENT: 4} | ({} if tokens["cached"] else {Miss.COLD: 96}),
    )


def verdict(name: str, score: float | None, seconds: float) -> Verdict:
    failure = None if score is not None else Failure.TIMEOUT
    evaluation = Evaluation(score=score, failure=failure, seconds=seconds)
    return Verdict(
        candidate=name, evaluation=evaluation, program="x = -1\n" if name == INITIAL else None
    )


def history_of(problem: Problem, *events: tuple[int, float, Event]) -> RunHistory:
    history = RunHistory(direction=problem.direction)
    for session, elapsed, event in events:
        history.fold(Recorded(session=session, elapsed=elapsed, event=event))
    return history


@pytest.fixture
def history(problem: Problem) -> RunHistory:
    """Two sessions; four children, of which one is refused and one fails."""
    call = Call(
        iteration=0,
        island=0,
        parent=INITIAL,
        rule="elite",
        operator="infill",
        k=4,
        known=2,
        guessed=False,
        prompt="",
        prompt_tokens=100,
        temperatures=(),
        seeds=(),
    )
    return history_of(
        problem,
        (0, 0.0, Session(number=0, engine="0", fingerprint="f")),
        (0, 0.0, verdict(INITIAL, 0.4990, 7.0)),
        (0, 1.0, call),
        (0, 2.0, child(0, None, cached=0, generated=11, seconds=0.25)),
        (0, 2.5, child(1, Refusal.UNPARSED, cached=96, generated=13, seconds=0.5)),
        (0, 3.25, verdict("0.0", 0.6125, 0.125)),
        (1, 0.5, Session(number=1, engine="0", fingerprint="f")),
        (1, 1.0, child(2, None, cached=96, generated=17, seconds=1.0)),
        (1, 2.0, child(3, None, cached=96, generated=19, seconds=2.0)),
        (1, 3.0, verdict("0.3", 0.5, 0.25)),
        (1, 4.5, verdict("0.2", None, 2.0)),
    )


def test_the_figures_are_the_sums_of_what_was_recorded(
    settings: RunSettings, problem: Problem, history: RunHistory
) -> None:
    assert summarise(settings=settings, problem=problem, history=history) == {
        "problem": "signal",
        "model": "smollm2",
        "seed": 3,
        "width": "fixed",
        "islands": 1,
        "mean_k": 4.0,
        "layout": "stable",
        "children": 4,
        "candidates": 3,
        "valid": 2,
        "valid_share": 2 / 3,
        "screened": 0,
        "screens_off": {},
        "unevaluated": 0,
        "refused": {"unparsed": 1},
        "best_score": 0.6125,
        "best_candidate": "0.0",
        "best_made_by": "model",
        "initial_score": 0.4990,
        "best_known": {"score": 0.760, "source": "EvoX, highest of its published bests"},
        "isolation": None,
        "direction": "maximise",
        "features": [asdict(each) for each in problem.features],
        "prompt_tokens": 400,
        "cached_prompt_tokens": 288,
        "hit_rate": 288 / 400,
        "computed_prompt_tokens": {"alignment": 16, "cold": 96},
        "speculation": {
            "guesses": 0,
            "hits": 0,
            "hit_share": None,
            "wasted_tokens": 0,
            "wasted_prompt_tokens": 0,
            "wasted_llm_seconds": 0,
        },
        "fills": {},
        "learning": None,
        "generated_tokens": 60,
        "advisor": None,
        "guidance": None,
        "llm_seconds": 3.75,
        "evaluation_seconds": 2.375,  # without the initial program's
        "wall_seconds": 3.25 + 4.5,
        "sessions": 2,
        "budget": {
            **{"candidates": 10, "seconds": 60.5, "tokens": 1000, "money": None},
            **{"target": None, "patience": 5},
            "prices": {"prompt": 1.0, "cached_prompt": 0.25, "generated": 10.0},
        },
        # 112 prompt tokens were computed, 288 cached and 60 generated.
        "money": 784e-6,
        "longest_wait": 2,
    }


def test_what_cheap_stages_did_is_in_the_summary(
    settings: RunSettings, problem: Problem, history: RunHistory
) -> None:
    screened = Verdict(candidate="0.4", evaluation=Evaluation(score=None, failure=Failure.SCREENED))
    off = SwitchedOff(stage="quick", iteration=5, correlation=0.1, error=0.2, pairs=64)
    for event in (child(4, None, cached=0, generated=1, seconds=0.0), screened, off):
        history.fold(Recorded(session=1, elapsed=5.0, event=event))
    summary = summarise(settings=settings, problem=problem, history=history)
    assert (summary["candidates"], summary["screened"]) == (4, 1)
    assert summary["valid_share"] == 2 / 3  # of those that were not screened out
    fields = {"stage": "quick", "iteration": 5, "correlation": 0.1, "error": 0.2, "pairs": 64}
    assert summary["screens_off"] == {"quick": fields}
    assert json.loads(json.dumps(summary)) == summary


def test_what_became_of_guesses_is_in_the_summary(
    settings: RunSettings, problem: Problem, history: RunHistory
) -> None:
    right = replace(history.calls[0], iteration=1, guessed=True)
    lost = GivenUp(
        iteration=2,
        attempt=0,
        island=0,
        parent=INITIAL,
        generated_tokens=70,
        prompt_tokens=200,
        cached_prompt_tokens=150,
        llm_seconds=0.5,
    )
    for event in (right, lost, replace(lost, attempt=1, generated_tokens=3, llm_seconds=0.25)):
        history.fold(Recorded(session=1, elapsed=5.0, event=event))
    summary = summarise(settings=settings, problem=problem, history=history)
    assert summary["speculation"] == {
        "guesses": 3,
        "hits": 1,
        "hit_share": 1 / 3,
        "wasted_tokens": 73,
        "wasted_prompt_tokens": 100,
        "wasted_llm_seconds": 0.75,
    }
    # The money is all that was paid: 100 computed prompt tokens, 300 cached and 73 generated more.
    assert summary["money"] == pytest.approx(784e-6 + (100 + 300 * 0.25 + 73 * 10) * 1e-6)
    # What the children cost is told without them.
    assert (summary["generated_tokens"], summary["llm_seconds"]) == (60, 3.75)


def test_a_run_that_has_only_begun(settings: RunSettings, problem: Problem) -> None:
    history = history_of(
        problem,
        (0, 0.0, Session(number=0, engine="0", fingerprint="f")),
        (0, 0.0, verdict(INITIAL, 0.4990, 7.0)),
    )
    summary = summarise(settings=settings, problem=problem, history=history)
    assert (summary["children"], summary["candidates"], summary["hit_rate"]) == (0, 0, 0.0)
    assert (summary["valid_share"], summary["refused"]) == (None, {})
    assert summary["computed_prompt_tokens"] == {}
    assert (summary["best_score"], summary["best_candidate"]) == (0.4990, INITIAL)


def test_the_files_hold_the_summary_and_the_best_program(
    tmp_path: Path, settings: RunSettings, problem: Problem, history: RunHistory
) -> None:
    (tmp_path / "summary.json").write_text("an older one")
    summary = write_results(
        folder=tmp_path,
        settings=settings,
        problem=problem,
        history=history,
        ended_by=Limit.PATIENCE,
    )
    assert json.loads((tmp_path / "summary.json").read_text()) == summary
    assert summary["clock"] is None  # nothing was recorded
    assert summary["ended_by"] == "patience"
    assert (tmp_path / "best.py").read_bytes() == "x = 0  # ½\n".encode()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.py", "summary.json"]


def test_a_summary_that_cannot_be_written_is_named_and_leaves_the_old_one(
    tmp_path: Path, settings: RunSettings, problem: Problem, history: RunHistory
) -> None:
    (tmp_path / "summary.json").write_text("an older one")
    (tmp_path / ".summary.json.partial").mkdir()  # so that the new one can't be
    with pytest.raises(UserError, match=r"summary\.json can't be written: Is a directory"):
        write_results(
            folder=tmp_path, settings=settings, problem=problem, history=history, ended_by=None
        )
    assert (tmp_path / "summary.json").read_text() == "an older one"
    assert not (tmp_path / "best.py").exists()


@pytest.mark.parametrize(
    ("direction", "comparable", "expected"),
    [
        (Direction.MAXIMISE, (True, True, True), 3.0),
        (Direction.MINIMISE, (True, True, True), 1.0),
        (Direction.MAXIMISE, (True, True, False), 2.0),
        (Direction.MINIMISE, (False, False, True), 3.0),
        (Direction.MAXIMISE, (False, False, False), None),
    ],
)
def test_the_best_known_score_is_the_best_that_compares(
    settings: RunSettings,
    problem: Problem,
    history: RunHistory,
    direction: Direction,
    comparable: tuple[bool, ...],
    expected: float | None,
) -> None:
    known = tuple(
        KnownScore(score=score, source=f"paper {score}", comparable=compares)
        for score, compares in zip((1.0, 2.0, 3.0), comparable, strict=True)
    )
    given = replace(problem, direction=direction, known_scores=known)
    best = summarise(settings=settings, problem=given, history=history)["best_known"]
    assert best == (expected and {"score": expected, "source": f"paper {expected}"})


def test_the_summary_names_problem_and_model_as_given(
    settings: RunSettings, problem: Problem, history: RunHistory
) -> None:
    other = replace(settings, model=replace(settings.model, name="some-model"), seed=2**63 - 1)
    summary = summarise(settings=other, problem=replace(problem, name="ünï"), history=history)
    assert (summary["problem"], summary["model"]) == ("ünï", "some-model")
    assert json.loads(json.dumps(summary))["seed"] == 2**63 - 1


def test_the_clock_of_a_run_is_in_its_summary(
    tmp_path: Path, settings: RunSettings, problem: Problem, history: RunHistory
) -> None:
    now = 0
    with Timeline(tmp_path / TIMELINE, clock=lambda: now) as timeline:
        evaluator = timeline.evaluator(0)
        with timeline.model.begin(Activity.STEP):
            now = 500_000
            evaluator.add(Activity.EVALUATE, 500e-6)
            now = 750_000
        now = 1_000_000
    summary = write_results(
        folder=tmp_path, settings=settings, problem=problem, history=history, ended_by=None
    )
    assert summary["ended_by"] is None
    assert summary["clock"]["model"]["busy"] == 0.75
    assert summary["clock"]["evaluators"] == [
        {"number": 0, "busy": 0.5, "filling": 0.0, "awaiting_candidates": 0.5},
    ]
    assert (summary["clock"]["both"], summary["clock"]["neither"]) == (0.5, 0.25)


def test_what_was_learned_is_in_the_summary(
    tmp_path: Path, settings: RunSettings, problem: Problem, history: RunHistory
) -> None:
    learning = replace(settings, learning=config.resolve(["learning=grpo"]).learning)

    def summary() -> dict[str, Any]:
        found: dict[str, Any] = write_results(
            folder=tmp_path, settings=learning, problem=problem, history=history, ended_by=None
        )["learning"]
        return found

    nothing = summary()
    assert (nothing["updates"], nothing["version"], nothing["swap_ms"]) == (0, 0, None)
    assert (nothing["kl"], nothing["reward"], nothing["probe"]) == (None, None, None)
    step = Update(
        number=1,
        version=1,
        groups=(0, 1),
        stale=3,
        progress=0.1,
        reward=0.25,
        kl=0.5,
        seconds=2.0,
        swap_ms=8.0,
    )
    others = [
        replace(step, number=2, groups=(2,), stale=0, skipped="all equal", reward=9.0, swap_ms=0.0),
        replace(step, number=3, version=3, groups=(3,), reward=0.75, kl=1.5, swap_ms=16.0),
        replace(step, number=4, version=1, rolled_back="entropy fell", reward=9.0, swap_ms=12.0),
    ]
    for event in (step, *others):
        history.fold(Recorded(session=1, elapsed=5.0, event=event))
    (tmp_path / PROBE).write_text(json.dumps({"version": 1, "prompts": [], "valid": {"base": 3}}))
    found = summary()
    assert (found["method"], found["adapter"], found["version"]) == ("grpo", "last_block", 1)
    assert (found["updates"], found["skipped"], found["rolled_back"]) == (2, 1, 1)
    assert (found["groups"], found["stale_groups"], found["seconds"]) == (3, 9, 8.0)
    assert (found["reward"], found["kl"]) == (0.5, 1.5)
    assert (found["swap_ms"], found["longest_swap_ms"]) == (12.0, 16.0)
    assert found["probe"] == {"version": 1, "valid": {"base": 3}}
    assert json.loads((tmp_path / "summary.json").read_text())["learning"] == found

"""What is printed where there is no terminal: plain lines, letter by letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import config
from engine.core import INITIAL, Direction, Evaluation, Failure, SwitchedOff
from engine.report import Display, print_result
from engine.store import Recorded, RunHistory, Session, Verdict

TITLE = "brood · signal · runs[/red]/[bold]x[/bold]" + "-" * 80


@pytest.fixture
def history() -> RunHistory:
    history = RunHistory(direction=Direction.MAXIMISE)
    history.fold(
        Recorded(session=0, elapsed=0.0, event=Session(number=0, engine="0", fingerprint="f"))
    )
    return history


def take(history: RunHistory, name: str, score: float) -> None:
    evaluation = Evaluation(score=score, failure=None)
    event = Verdict(candidate=name, evaluation=evaluation, program="x = 1\n")
    history.fold(Recorded(session=0, elapsed=1.0, event=event))


def test_a_line_is_printed_for_each_better_score_and_at_the_end(
    history: RunHistory, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = config.resolve(["budget.candidates=5", "budget.seconds=null"])
    with Display(settings=settings, history=history, title=TITLE) as update:
        update()
        take(history, INITIAL, 0.25)
        update()
        update()  # nothing new, and too early for a line
        take(history, "0.1", 0.125)
        update()
        take(history, "0.2", 0.5)
        update()
        take(history, "0.3", 0.5001)  # better by less than what a line is worth
        update()
    title, *lines = capsys.readouterr().out.splitlines()
    assert title == TITLE
    assert [line.split(" · ")[0] for line in lines] == [
        "best - (initial -)",
        "best 0.25 (initial 0.25)",
        "best 0.5 (initial 0.25)",
        "best 0.5001 (initial 0.25)",
    ]
    assert "candidates 3/5 · valid 3 (100%)" in lines[-1]
    assert lines[0].endswith("left -")


def test_the_line_says_how_far_it_is_to_each_limit(
    history: RunHistory, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = {"seconds": "3600", "candidates": "null", "tokens": "5000", "money": "2.5"}
    limits |= {"target": "0.75", "patience": "9", "prices.generated": "1000"}
    settings = config.resolve([f"budget.{key}={value}" for key, value in limits.items()])
    take(history, INITIAL, 0.25)
    with Display(settings=settings, history=history, title=TITLE):
        history.generated_tokens, history.wasted_tokens = 400, 100
        take(history, "0.1", 0.125)
    line = capsys.readouterr().out.splitlines()[-1]
    assert " · candidates 1 · " in line
    assert " · target 0.75 · tokens 500/5000 · money 0.5/2.5 · patience 1/9 · elapsed 0:0" in line
    # Of an hour there is more left than of tokens, of which a tenth went in no time at all.
    assert "left 59:" not in line and not line.endswith("left -")


def test_the_line_says_what_cheap_stages_do(
    history: RunHistory, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = config.resolve(["budget.candidates=5"])
    take(history, INITIAL, 0.25)
    with Display(settings=settings, history=history, title=TITLE) as update:
        update()
        screened = Verdict(
            candidate="0.1", evaluation=Evaluation(score=None, failure=Failure.SCREENED)
        )
        off = SwitchedOff(stage="quick", iteration=1, correlation=0.126, error=0.1, pairs=64)
        for event in (screened, off):
            history.fold(Recorded(session=0, elapsed=1.0, event=event))
    first, last = capsys.readouterr().out.splitlines()[1:]
    assert "screened" not in first and "switched" not in first
    assert last.endswith("screened out 1 · switched off quick (rank correlation 0.13)")
    assert "candidates 1/5 · valid 0 ·" in last


def test_the_result_is_printed_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = "def f():\n\tx = '" + "[red]" * 40 + "'\n    # [/bold]\n"
    summary = {
        "best_candidate": "3.1",
        "best_score": 0.1234567890123,
        "initial_score": 0.1,
        "best_known": {"score": 0.75, "source": "A [b]paper[/b], Table 1"},
        "candidates": 3,
        "valid": 2,
        "children": 4,
        "wall_seconds": 3661.5,
        "cached_prompt_tokens": 5,
        "prompt_tokens": 8,
        "hit_rate": 0.625,
        "computed_prompt_tokens": {"alignment": 1, "cold": 7},
        "speculation": {"guesses": 9, "hits": 7, "wasted_tokens": 123},
        "guidance": {"written": 7, "unread": 3, "tokens": 900, "best_score": 1.0, "best": None},
        "best_made_by": "tuning",
        "fills": {
            "tuning": {
                **{"judged": 40, "valid": 30, "better": 5, "seconds": 12.4},
                "best_score": 0.1234567890123,
            }
        },
        "advisor": {
            "implementer": "endpoint",
            "endpoint_url": "https://[b]example.org",
            "ideas": {"new": 5, "refines": 3, "repeats": 1},
            "tested_ideas": 2,
            "advisor_tokens": 77,
            "unread": 4,
            "outages": 6,
        },
        "learning": {
            **{"method": "grpo", "adapter": "full", "updates": 5, "seconds": 61.4},
            **{"rolled_back": 1, "skipped": 2, "stale_groups": 3},
        },
        "budget": {"target": 0.12, "prices": {"prompt": 0.0, "generated": 2.5}},
        "money": 0.0123456789,
        "ended_by": "target",
        "clock": {
            "model": {"busy": 0.9, "awaiting_evaluations": 0.0625, "awaiting_parent": 0.01},
            "evaluators": [{"busy": 0.5, "filling": 0.25}, {"busy": 0.25, "filling": 0.75}],
        },
        "unevaluated": 3,
        "screened": 7,
        "screens_off": {"[b]": {"iteration": 12, "correlation": 0.12345, "pairs": 64}},
    }
    print_result(folder=Path("runs[/red]/x"), summary=summary, program=program)
    out = capsys.readouterr().out
    assert program in out
    assert ", a tuning):\n" in out
    assert (
        "\nIdle evaluators, tuning: 40 programs, 30 valid, 5 better than their parents, the " in out
    )
    assert "best 0.123457, in 12 s\n" in out
    assert "Best score 0.1234567890123 (initial 0.1)\n" in out
    assert "\nBest known score 0.75: A [b]paper[/b], Table 1\n3 candidates" in out
    assert "4 children in 1:01:01" in out
    assert "hit rate 62.5%\nComputed: 2 prompt tokens a child (7 cold, 1 alignment)\n" in out
    assert "\nSpeculation: 7 of 9 guesses came true; 123 tokens were generated for nothing\n" in out
    assert "\nAdvisor: ideas 5 new, 3 refines, 1 repeats; 2 tested; 77 tokens; programs by " in out
    assert "the endpoint at https://[b]example.org, 4 answers of no use, 6 failed req" in out
    assert "\nLearning (grpo, full): 5 updates in 61 s, 1 rolled back, 2 skipped, 3 groups" in out
    assert "\nGuidance: 7 written, 3 answers of no use, 900 tokens\n" in out
    assert "\nClock: model busy 90%, evaluators 38% and filling 50%; the model waited for " in out
    assert "\nEnded by budget.target=0.12\nCandidates whose evaluation" in out
    assert " the end came before: 3\n7 screened out by cheap" in out
    assert "\nMoney: 0.0123457 for all tokens at the prices of budget.prices\n" in out
    assert "Stage [b] was switched off from iteration 12 on" in out and "was 0.123 over 64" in out
    assert "Everything is in runs[/red]/x: best.py, summary.json, config.yaml, run.db\n" in out

    fewer = summary | {"best_known": None, "computed_prompt_tokens": {}, "clock": None}
    fewer["advisor"] = fewer["guidance"] = None
    fewer["speculation"] = {"guesses": 0, "hits": 0, "wasted_tokens": 0}
    fewer |= {"learning": None, "fills": {}, "best_made_by": "model"}
    fewer |= {"ended_by": None, "budget": {"prices": {"prompt": 0.0, "generated": 0.0}}}
    (tmp_path / "run.url").touch()  # a server has its events
    print_result(folder=tmp_path, summary=fewer, program=program)
    out = capsys.readouterr().out
    assert f"Everything is in {tmp_path}: best.py, summary.json, config.yaml, run.url\n" in out
    assert "known" not in out and "Computed" not in out and "Clock" not in out
    assert "Speculation" not in out and "Learning" not in out and "Guidance" not in out
    assert "Ended" not in out and "Money" not in out

"""The benchmark of a long run: what is made of its samples, and a short run and its resume."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.long_run import figures_of, made_in, session
from engine.core import UserError


def sample(thousand: int, *, cpu: float) -> dict[str, float]:
    return {
        **{"events": 1000 * thousand, "candidates": 470 * thousand, "cpu": cpu, "wall": 2 * cpu},
        **{"resident": (200 + thousand) << 20, "descriptors": 11, "timeline": 10 * thousand},
        "log": thousand << 20,
    }


def samples(count: int, *, slower: float) -> list[dict[str, float]]:
    """Return samples of a run each of whose thousands takes so much longer than the one before."""
    seconds, found = 0.0, []
    for thousand in range(count):
        found.append(sample(thousand, cpu=seconds))
        seconds += 1.0 + slower * thousand
    return found


def test_a_run_that_gets_no_slower_has_a_ratio_of_one() -> None:
    figures = figures_of(samples(60, slower=0.0), warmup=5000)
    assert figures["ratio"] == figures["thousand_ratio"] == figures["wall_ratio"] == 1.0
    assert figures["first_ms"] == 1.0
    assert figures["memory_kb"] == figures["log_kb"] == pytest.approx(1024 / 470, abs=0.01)
    assert figures["series"][-1]["events"] == 59_000


def test_a_run_that_gets_slower_has_a_larger_one() -> None:
    assert figures_of(samples(60, slower=0.1), warmup=5000)["ratio"] > 3


def test_a_run_that_is_too_short_is_a_line() -> None:
    with pytest.raises(UserError, match="more candidates"):
        figures_of(samples(20, slower=0.0), warmup=5000)


@pytest.mark.slow
def test_a_run_is_made_once_and_resumed(tmp_path: Path) -> None:
    made = made_in(tmp_path, candidates=500, seed="0")
    assert made["samples"][-1]["candidates"] > 0
    assert made_in(tmp_path, candidates=500, seed="0") == made
    assert session(tmp_path / "run")["seconds"] > 0

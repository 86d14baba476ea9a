"""Finished runs of a benchmark: found again with the same options, and with no others."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from bench.finished import add_finished, read_finished, shared_options


def test_a_run_is_found_again_with_its_options_alone(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    shared = {"problem": "signal", "candidates": "100"}
    assert read_finished(file, shared) == []
    run = add_finished(file, {"seed": 3, "best_score": 0.5}, shared)
    assert read_finished(file, shared) == [run]
    assert (run["seed"], run["options"]) == (3, shared)
    other = add_finished(file, {"seed": 3, "best_score": 0.7}, {**shared, "candidates": "200"})
    assert read_finished(file, {**shared, "candidates": "200"}) == [other]
    assert read_finished(file, {"problem": "signal"}) == []


def test_lines_of_earlier_versions_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text(json.dumps({"seed": 3, "model": "smollm2", "best_score": 0.5}) + "\n")
    assert read_finished(file, {"model": "smollm2"}) == []


@pytest.mark.parametrize(
    ("name", "decides"),
    [
        ("pipeline", {"model", "problem", "candidates"}),
        ("layouts", {"model", "problem", "candidates", "kept", "growth"}),
    ],
)
def test_every_option_that_decides_a_run_is_among_the_shared_ones(
    name: str, decides: set[str]
) -> None:
    module = importlib.import_module(f"bench.{name}")
    assert set(shared_options(module.DEFAULTS, apart=module._APART)) == decides

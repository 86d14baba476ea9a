"""What all methods' presets share: what is given wins, they run, with mutations too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import read_events, run

from engine import config

METHODS = [each for each in config.options("method") if each != "plain"]


@pytest.mark.parametrize("method", METHODS)
def test_the_command_line_wins_over_the_preset(method: str) -> None:
    given = (
        *("search.k=3", "search.parent.policy=power", "search.parent.gamma=2", "islands.count=7"),
        *("islands.migrate_every=4", "search.archive=none", "search.operators.diff=0.125"),
        *("search.temperature_min=0.25", "search.temperature_max=0.5", "width.policy=fixed"),
        *("pool.sources=[]", "learning=none", "prompts.history_tokens=17"),
    )
    for arguments in ([f"method={method}", *given], [*given, f"method={method}"]):
        settings = config.resolve(arguments)
        search, islands = settings.search, settings.islands
        assert (search.k, search.parent.policy, search.archive) == (3, "power", "none")
        assert (search.temperature_min, search.temperature_max) == (0.25, 0.5)
        assert search.operators["diff"] == 0.125
        assert (islands.count, islands.migrate_every) == (7, 4)
        assert settings.width.policy == "fixed"
        assert settings.pool.sources == ()
        assert settings.learning.method == "none"
        assert settings.prompts.history_tokens == 17


@pytest.mark.parametrize("method", METHODS)
def test_a_method_has_no_fill_unless_it_is_asked_for(method: str) -> None:
    default = config.resolve([]).fill
    assert default.makers  # or there would be nothing to turn off
    assert config.resolve([f"method={method}"]).fill.makers == ()
    for arguments in ([f"method={method}", "fill=default"], ["fill=default", f"method={method}"]):
        assert config.resolve(arguments).fill == default


@pytest.mark.parametrize("method", METHODS)
def test_the_null_hypothesis_of_a_method_is_its_search_with_mutations(method: str) -> None:
    own = config.resolve([f"method={method}"])
    null = config.resolve(["model=mutation", f"method={method}"])
    plain = config.resolve(["model=mutation"])
    for part in ("islands", "width", "pool", "fill"):
        assert getattr(null, part) == getattr(own, part), part
    for part in ("k", "parent", "archive", "novelty", "inspirations"):
        assert getattr(null.search, part) == getattr(own.search, part), part
    for part in ("operators", "mix", "temperature_min", "temperature_max", "failures"):
        assert getattr(null.search, part) == getattr(plain.search, part), part
    assert (null.prompts, null.learning, null.advisor) == (
        plain.prompts,
        plain.learning,
        plain.advisor,
    )


@pytest.mark.parametrize("method", METHODS)
def test_the_null_hypothesis_runs(method: str, tmp_path: Path) -> None:
    done = run(
        *(f"method={method}", "model=mutation", "problem=uncertainty", "pool.sources=[]"),
        *("budget.candidates=12", "budget.seconds=null", f"runs={tmp_path}", "name=mutated"),
        scratch=tmp_path / "scratch",
    )
    assert done.returncode == 0, done.stderr
    assert "asked in words" not in done.stderr
    summary = json.loads((tmp_path / "mutated" / "summary.json").read_text())
    assert summary["candidates"] >= 12
    calls = read_events(tmp_path / "mutated")["call"]
    assert {each["operator"] for each in calls} == {"mutation"}


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_it_runs_with_a_small_model_which_it_says_is_small(method: str, tmp_path: Path) -> None:
    done = run(
        *(f"method={method}", "problem=uncertainty", "learning=none", "budget.candidates=null"),
        *("budget.tokens=300", "budget.seconds=null", "model.max_tokens=64", f"runs={tmp_path}"),
        *("name=small",),
        scratch=tmp_path / "scratch",
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "asked in words" in line]
    assert len(said) == 1
    assert "smollm2 is small (0.13 billion parameters, below 3)" in said[0]

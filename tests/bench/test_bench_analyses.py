"""The page of section 6's analyses, and the pools of experiment ``rq3``."""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_log import changed, hand_run

from bench.experiments.analyses import analysed, figures, main, page, read_problems
from bench.experiments.pools import degrade
from engine.core import UserError


def test_a_page_has_the_tables_and_figures_of_each_problem() -> None:
    run = hand_run(events=changed(shown={"0": (), "1": (), "2": ("0.0",)}))
    tables = analysed([run])
    drawn = [*figures("signal", tables)]
    names = [each.name for each in drawn]
    assert names == [
        *(f"signal-{each}" for each in ("improving", "valid", "distance")),
        *(f"signal-top-m-{each}" for each in ("improving", "gain")),
        "signal-shown",
    ]
    assert len(set(names)) == len(names)
    text = page("hand", {"signal": [run]}, {"signal": (tables, drawn)})
    assert "1 runs, 6 children." in text
    for name in names:
        assert f"(../images/analyses/hand-{name}.svg)" in text
    assert "| 3 | head | 1 |" in text and "| 3 | tail | 1 |" in text


def test_runs_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="matches no run's folder"):
        read_problems(str(tmp_path))
    with pytest.raises(UserError, match="matches no run's folder"):
        read_problems(str(tmp_path / "no" / "*"))
    with pytest.raises(UserError, match="give name=NAME"):
        main(["name=../up", f"runs={tmp_path}"])


@pytest.mark.parametrize(("count", "left"), [(10, 8), (6, 4), (1, 0)])
def test_a_degraded_pool_lacks_the_best_fifth(count: int, left: int, tmp_path: Path) -> None:
    full, bottom = tmp_path / "full", tmp_path / "bottom80"
    full.mkdir()
    for number in range(1, count + 1):
        (full / f"{number:03}.py").touch()
    degrade(full, bottom)
    kept = sorted(each.name for each in bottom.iterdir())
    assert kept == [f"{number:03}.py" for number in range(count - left + 1, count + 1)]
    with pytest.raises(UserError, match="remove it to make it anew"):
        degrade(full, bottom)

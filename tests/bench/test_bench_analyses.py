"""The page of section 6's analyses, and the pools of experiment ``rq3``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hand_log import changed, hand_run

from bench.experiments.analyses import (
    LEAST_CALLS,
    analysed,
    counted,
    drawn,
    figures,
    main,
    measured,
    page,
    read_problems,
)
from bench.experiments.pools import degrade
from engine.core import UserError
from engine.report.analysis import RunRecord

ROOT = Path(__file__).parents[2]


def test_a_page_has_the_tables_and_figures_of_each_problem() -> None:
    run = hand_run(events=changed(shown={"0": (), "1": (), "2": ("0.0",)}))
    drawings = [*figures("signal", analysed([run]))]
    names = [each.name for each in drawings]
    assert names == [
        *(f"signal-{each}" for each in ("improving", "valid", "distance")),
        *(f"signal-top-m-{each}" for each in ("improving", "gain")),
        "signal-shown",
    ]
    assert len(set(names)) == len(names)
    text = page(numbers(run), {"signal": drawings})
    assert "1 runs, 1 of them with a fixed K; 6 children." in text
    for name in names:
        assert f"(../images/analyses/hand-{name}.svg)" in text
    assert "| 3 | head | 1 |" in text and "| 3 | tail | 1 |" in text
    assert "shows another program" not in text
    bare = numbers(hand_run())
    assert "No call of these runs shows another program" in page(bare, drawn(bare))


def numbers(run: RunRecord) -> dict[str, Any]:
    """Return the numbers of a page of one run, in which a single call counts."""
    tables = {key: list(table.rows) for key, table in analysed([run]).items()}
    return {**measured("hand", {"signal": [run]}), "problems": {"signal": tables}}


def test_a_run_counts_for_a_k_with_enough_calls_of_it() -> None:
    """It has two calls of K = 2, one of them cut short, and one of K = 3."""
    run = hand_run()
    assert {each.call.k for each in counted(run, least=1).trials} == {2, 3}
    assert {each.call.k for each in counted(run, least=2).trials} == {2}
    assert not counted(run, least=3).trials
    found = measured("hand", {"signal": [run]})
    assert found["least_calls"] == LEAST_CALLS > 2
    assert found["made_of"] == {"signal": {"runs": 1, "fixed_k": 1, "children": 6}}
    assert not any(found["problems"]["signal"].values())
    text = page(found, drawn(found))
    assert f"with {LEAST_CALLS} calls of it or more" in text
    assert "Head, middle and tail of the calls, over runs: nothing to show." in text
    chosen = hand_run("width.policy=turboevolve")
    assert measured("hand", {"signal": [chosen]})["made_of"]["signal"]["fixed_k"] == 0


def test_the_first_children_are_drawn_for_the_k_of_most_children() -> None:
    """Of K = 2 there are four calls, of K = 7 two, which have more children."""
    row = {"tier": 0, "m": 1, "runs": 1} | {
        f"{key}{end}": 0.5 for key in ("improving", "gain") for end in ("", "_q1", "_q3")
    }
    rows = [{**row, "K": k, "calls": calls} for k, calls in ((1, 20), (2, 4), (7, 2))]
    tables = {key: replace(table, rows=()) for key, table in analysed([hand_run()]).items()}
    tables["top_m"] = replace(tables["top_m"], rows=rows)
    titles = [each.title for each in figures("signal", tables)]
    assert len(titles) == 2 and all(", K = 7, by tier" in each for each in titles)


def test_the_published_page_is_that_of_its_numbers() -> None:
    found = json.loads((ROOT / "bench/results/analyses/k.json").read_text(encoding="utf-8"))
    pictures = drawn(found)
    published = ROOT / "docs" / "analyses" / "k.md"
    assert page(found, pictures) == published.read_text(encoding="utf-8")
    names = {f"k-{each.name}.svg" for own in pictures.values() for each in own}
    images = ROOT / "docs" / "images" / "analyses"
    assert {each.name for each in images.glob("k-*")} == names
    runs = [
        json.loads(line)
        for line in (ROOT / "bench/results/experiments/k.jsonl").read_text().splitlines()
    ]
    for problem, of in found["made_of"].items():
        own = [each for each in runs if each["problem"] == problem]
        assert (of["runs"], of["children"]) == (len(own), sum(each["children"] for each in own))


def test_a_page_is_made_of_runs_and_anew_of_its_numbers(recorded_run: Path, tmp_path: Path) -> None:
    where = [f"results={tmp_path / 'results'}", f"to={tmp_path / 'docs'}"]
    with pytest.raises(UserError, match=r"hand\.json can't be read .* give runs=FOLDER"):
        main(["name=hand", *where])
    main(["name=hand", f"runs={recorded_run.parent}/{recorded_run.name}*", *where])
    made = tmp_path / "docs" / "analyses" / "hand.md"
    text = made.read_text()
    made.unlink()
    main(["name=hand", *where])
    assert made.read_text() == text and "1 runs, 1 of them with a fixed K; 0 children." in text


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

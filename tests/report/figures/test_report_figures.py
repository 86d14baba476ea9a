"""Figures are valid, stay small, survive odd numbers, and say in words what they show."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import altair as alt
import pytest
import vl_convert
from hand_log import changed, hand_run, recorded, settings_of, with_others

from engine.core import Direction, Feature, KnownScore, Miss, Update
from engine.report.figures import Aims, Figure, figures_across, figures_of, path_of
from engine.report.figures.archive import archive
from engine.report.figures.programs import by_time, lineage
from engine.report.figures.spans import outcomes, prompts
from engine.report.figures.thinning import score_axis, thinned
from engine.store import Recorded

MAXIMISE, MINIMISE = Direction.MAXIMISE, Direction.MINIMISE
AIMS = Aims(known=[KnownScore(score=0.95, source="someone")], target=1.0)
CELLS = {"initial": (0, 1), "0.0": (1, 1), "1.0": (2, 0), "1.1": (3, 1), "2.0": (2, 0)}
FEATURES = (
    Feature(name="characters", low=0, high=20, bins=4),
    Feature(name="nodes", low=0, high=10, bins=2),
)
UPDATE = Update(number=1, version=1, groups=(0,), stale=0, progress=0.5, reward=0.25)


def full_run() -> Any:
    """The run with an archive, two steps of training and prompts whose tokens were computed."""
    missed = {name: {Miss.NEW: 15, Miss.ALIGNMENT: 5} for name in ("0.0", "0.1", "1.0", "1.1")}
    events = changed(cell=CELLS, missed=missed)
    skipped = replace(UPDATE, number=2, skipped="no group")
    events += [
        Recorded(session=1, elapsed=4.0 + each.number, event=each) for each in (UPDATE, skipped)
    ]
    return hand_run("search.archive=problem", events=events, declared=FEATURES)


def drawn(figure: Figure) -> str:
    """Check a figure against the schema, and return it as SVG."""
    whole = figure.whole()
    alt.Chart.from_dict(whole)
    json.dumps(whole, allow_nan=False)
    svg: str = vl_convert.vegalite_to_svg(whole)
    assert figure.alt.endswith(".") and figure.title
    return svg


def test_each_figure_is_valid_and_drawn_with_titled_axes() -> None:
    found = figures_of(full_run(), aims=AIMS)
    names = [each.name for each in found]
    assert names == [
        *("best-by-candidates", "best-by-seconds", "best-by-tokens", "lineage", "programs"),
        *("outcomes", "yields", "hit-rate", "misses", "k", "widths", "operators", "islands"),
        *("archive", "learning-reward", "learning-nats", "learning-gradient", "learning-shares"),
    ]
    words = {
        "best-by-candidates": ("Evaluated candidates", "Best score", "target", "best known"),
        "best-by-seconds": ("Wall time (seconds)", "Best score"),
        "best-by-tokens": ("Generated tokens",),
        "lineage": ("Order of generation (programs)", "Score", "island 1"),
        "programs": ("Wall time of the verdict (seconds)", "Score", "infill"),
        "outcomes": ("Wall time (seconds)", "Children in", "refused: unparsed"),
        "hit-rate": ("Hit rate (share of prompt tokens)", "100%"),
        "misses": ("Computed prompt tokens per child", "alignment"),
        "k": ("K (children)", "Call"),
        "widths": ("Children better than their parent",),
        "operators": ("infill", "diff"),
        "islands": ("Evaluated candidates", "island 0"),
        "archive": ("characters", "nodes", "Best score"),
        "learning-reward": ("Step of training", "Reward (mean)"),
        "learning-nats": ("Nats a token", "entropy", "mismatch"),
    }
    for each in found:
        svg = drawn(each)
        assert all(word in svg for word in words.get(each.name, ())), each.name


def test_several_runs_have_a_band_and_their_groups() -> None:
    runs = [
        replace(
            hand_run(),
            name=f"run {k} {seed}",
            settings=settings_of(f"search.k={k}", f"seed={seed}"),
        )
        for k in (1, 4)
        for seed in (0, 1)
    ]
    series = {run.name: f"search.k={run.settings.search.k}" for run in runs}
    found = {each.name: each for each in figures_across(runs, aims=AIMS, series=series)}
    assert list(found) == ["best-by-candidates", "best-by-seconds", "best-by-tokens", "comparison"]
    assert {row["series"] for row in found["best-by-seconds"].data["bands"]} == set(series.values())
    listed = found["comparison"].table.rows
    assert [(row["group"], row["runs"], row["median"]) for row in listed] == [
        ("search.k=1", 2, 0.9),
        ("search.k=4", 2, 0.9),
    ]
    assert {row["confidence"] for row in listed} == {"50.0%"}
    for each in found.values():
        assert "search.k=4" in drawn(each)
    assert figures_across(runs[:1], aims=AIMS, series=series) == []


def test_the_path_leads_from_the_first_program_to_the_best() -> None:
    assert path_of(hand_run()) == ["initial", "0.0", "1.1"]
    assert path_of(hand_run(direction=MINIMISE)) == ["initial"]
    assert path_of(hand_run(events=recorded()[:2])) == ["initial"]
    assert path_of(hand_run(events=with_others())) == ["i2.4.0", "f1", "4.0"]


def test_a_run_that_has_only_begun_has_few_figures() -> None:
    found = figures_of(hand_run(events=recorded()[:2]), aims=Aims())
    assert [each.name for each in found] == ["best-by-seconds", "programs"]
    assert all(map(drawn, found))


def program(number: int, score: float | None, **more: Any) -> dict[str, Any]:
    return {
        "id": f"{number}.0",
        "order": number,
        "seconds": float(number),
        "island": number % 3,
        "operator": "diff",
        "parent": f"{number - 1}.0",
        "score": score,
        "gain": 0.0,
        "new_best": False,
        **more,
    }


def test_many_programs_are_thinned_and_the_path_and_the_bests_stay() -> None:
    rows = [program(n, n / 20_000, new_best=n % 1000 == 0) for n in range(20_000)]
    path = {"7.0", "13.0", "19999.0"}
    tree = lineage(rows, direction=MAXIMISE, path=path)
    points = by_time(rows, direction=MAXIMISE)
    assert tree is not None and points is not None
    for figure in (tree, points):
        assert all(len(each) <= 1600 for each in figure.data.values())
        assert "of 20,000 programs are drawn" in figure.note
    assert {row["id"] for row in tree.data["best"]} == path
    assert {f"{n}.0" for n in range(0, 20_000, 1000)} <= {r["id"] for r in points.data["points"]}


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize(
    "scores",
    [
        [1.7e308, -1.7e308, 0.0],
        [5e-324, 0.0],
        [1.0],
        [2.0, 2.0, 2.0],
        [0.5] * 50 + [-1e30, 1e30],
        [0.0, -0.0],
    ],
)
def test_odd_scores_are_drawn_on_a_finite_axis(direction: Direction, scores: list[float]) -> None:
    axis = score_axis(scores, direction)
    assert axis.low < axis.high and math.isfinite(axis.high - axis.low)
    assert all(axis.low <= axis.place(each)["y"] <= axis.high for each in scores)
    best = min(scores, key=direction.key)
    assert abs(best) > 1e150 or axis.has(best)
    figure = by_time([program(n, score) for n, score in enumerate(scores)], direction=direction)
    assert figure is not None
    assert "NaN" not in drawn(figure)


@pytest.mark.parametrize(("direction", "outlier"), [(MAXIMISE, -1e6), (MINIMISE, 1e6)])
def test_far_worse_scores_do_not_stretch_the_axis(direction: Direction, outlier: float) -> None:
    scores = [0.4 + n / 1000 for n in range(100)] + [outlier] * 5
    axis = score_axis(scores, direction)
    assert axis.high - axis.low < 1 and not axis.has(outlier)
    assert axis.place(outlier)["place"] == "off the axis"
    figure = by_time([program(n, score) for n, score in enumerate(scores)], direction=direction)
    assert figure is not None and "5 far worse scores are triangles" in figure.note


def test_a_far_aim_is_left_off_the_axis() -> None:
    assert score_axis([0.4, 0.5], MAXIMISE, aims=[0.9]).has(0.9)
    assert not score_axis([0.4, 0.5], MAXIMISE, aims=[90.0]).has(90.0)


def test_thinning_keeps_the_order_and_what_it_is_told_to() -> None:
    assert thinned(range(10), 20) == list(range(10))
    found = thinned(range(1000), 50, keep=lambda each: each in (3, 501))
    assert found == sorted(found) and len(found) <= 50 and {3, 501, 0} <= {*found}
    assert thinned(range(5), 2, keep=lambda each: True) == list(range(5))


@pytest.mark.parametrize("features", [1, 2, 3])
@pytest.mark.parametrize("direction", Direction)
def test_an_archive_of_any_number_of_features_is_drawn(features: int, direction: Direction) -> None:
    cells = [
        {"run": "r", "id": f"{n}.0", "score": float(n), "programs": 1}
        | {
            f"{key}_{axis}": {"feature": f"f{axis}", "bin": n % 2, "low": n % 2, "high": n % 2 + 1}[
                key
            ]
            for axis in range(1, features + 1)
            for key in ("feature", "bin", "low", "high")
        }
        for n in range(6)
    ]
    figure = archive(cells, direction=direction)
    assert figure is not None
    assert len(figure.data["cells"]) == 2
    best = {row["score"] for row in figure.data["cells"]}
    assert best == ({4, 5} if direction is MAXIMISE else {0, 1})
    assert [row["programs"] for row in figure.data["cells"]] == [3, 3]  # of all cells that it joins
    assert bool(figure.note) is (features == 3)
    drawn(figure)


def test_rare_outcomes_share_a_colour() -> None:
    rows = [
        {"since": 0.0, "until": 1.0, "outcome": "failed", "reason": f"r{n}", "children": n + 1}
        for n in range(12)
    ]
    figure = outcomes(rows)
    assert figure is not None
    assert {row["series"] for row in figure.data["bars"]} == {
        "other",
        *(f"failed: r{n}" for n in range(5, 12)),
    }
    assert len(figure.table.rows) == 12
    drawn(figure)
    assert outcomes([]) is None and prompts([]) == []

"""The best score so far against candidates, seconds and tokens: a line for each run, or group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from engine.core import Direction, KnownScore
from engine.report.analysis.figures import Table
from engine.report.figures.figure import Figure, Row
from engine.report.figures.style import GREY, clock, finished, line_colours, number, rows
from engine.report.figures.thinning import ScoreAxis, score_axis, thinned

_MOST = 400  # points of a run's line
_THOUSANDS = 20_000  # from which an axis counts in thousands and millions
_STEPS = 80  # budgets at which the runs of a group are compared
_AXES = {"candidates": "Evaluated candidates", "seconds": "Wall time", "tokens": "Generated tokens"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Aims:
    """What scores are worth reaching.

    Attributes:
        known: the published ones.
        target: of the problem, or of the run's budget; None for none.
    """

    known: Sequence[KnownScore] = ()
    target: float | None = None

    @property
    def comparable(self) -> list[KnownScore]:
        """Those published ones that compare."""
        return [each for each in self.known if each.comparable]


def progress(
    bests: Sequence[Row],
    ends: Sequence[Row],
    *,
    direction: Direction,
    aims: Aims,
    series: Mapping[str, str],
) -> list[Figure]:
    """Return a figure for each axis that says something.

    Args:
        bests: when each run's best score changed; the first row of each run is its beginning.
        ends: what each run has used, and reached.
        direction: of the score.
        aims: scores to draw as lines.
        series: the group of each run; runs of a group share a colour.
    """
    aimed = [each.score for each in aims.comparable]
    aimed += [] if aims.target is None else [aims.target]
    axis = score_axis([row["best"] for row in bests], direction, aims=aimed)
    drawn = [each for each in _AXES if any(end[each] > 0 for end in ends)]
    return [_figure(each, bests, ends, direction, aims, series, axis) for each in drawn]


def _figure(
    budget: str,
    bests: Sequence[Row],
    ends: Sequence[Row],
    direction: Direction,
    aims: Aims,
    series: Mapping[str, str],
    axis: ScoreAxis,
) -> Figure:
    most = max(end[budget] for end in ends)
    title, divisor = _AXES[budget], 1.0
    if budget == "seconds":
        unit, divisor = clock(most)
        title = f"{title} ({unit})"
    lines: list[dict[str, Any]] = []
    curves: dict[str, dict[str, list[list[tuple[float, float]]]]] = {}
    for end in ends:
        run = end["run"]
        steps = [(row[budget] / divisor, row["best"]) for row in bests if row["run"] == run]
        curve = [*thinned(steps, _MOST), (end[budget] / divisor, end["best"])]
        curves.setdefault(series[run], {}).setdefault("runs", []).append(curve)
        lines += [{"run": run, "series": series[run], "x": x, **axis.place(y)} for x, y in curve]
    bands = [
        {"series": name, **row}
        for name, each in curves.items()
        if len(each["runs"]) > 1
        for row in _band(each["runs"], axis)
    ]
    names = list(dict.fromkeys(series[end["run"]] for end in ends))
    y = alt.Y("y:Q", title="Best score", scale=_domain(axis))
    line = (
        alt.Chart(rows("lines"))
        .mark_line(interpolate="step-after", strokeWidth=2 if not bands else 1)
        .encode(
            *line_colours(names),
            x=alt.X(
                "x:Q",
                title=title,
                scale=alt.Scale(domain=[0, most / divisor or 1], nice=False),
                axis=alt.Axis(format="~s" if most / divisor >= _THOUSANDS else ",f", tickCount=8),
            ),
            y=y,
            detail=alt.Detail("run:N"),
            opacity=alt.value(0.35 if bands else 1.0),
            tooltip=[
                alt.Tooltip("run:N"),
                alt.Tooltip("x:Q", title=title),
                alt.Tooltip("y:Q", title="best"),
            ],
        )
    )
    aimed = _aim_rows(aims, axis, most / divisor, direction)
    layers = [*_bands(names, bands), line, *_aims(aimed)]
    data = {"lines": lines, "aims": aimed}
    if bands:
        data["bands"] = bands
    reached = ", ".join(f"{end['run']}: {number(end['best'])}" for end in ends[:8])
    return Figure(
        name=f"best-by-{budget}",
        title=f"Best score against {title[0].lower()}{title[1:]}",
        alt=f"Step lines; {'higher' if direction is Direction.MAXIMISE else 'lower'} is better. "
        f"At their ends, {reached}{' and others' if len(ends) > 8 else ''}.",
        note=_note(aims, axis, bool(bands), is_first=budget == "candidates"),
        spec=finished(alt.layer(*layers)),
        data=data,
        table=_table(budget, bests, ends),
    )


def _table(budget: str, bests: Sequence[Row], ends: Sequence[Row]) -> Table:
    """Return what a single run reached when, or what several ones reached in the end."""
    if len(ends) == 1:
        return Table(title="", rows=[{budget: row[budget], "best": row["best"]} for row in bests])
    listed = [{"run": end["run"], budget: end[budget], "best": end["best"]} for end in ends]
    return Table(title="", rows=listed)


def _domain(axis: ScoreAxis) -> Any:
    return alt.Scale(domain=[axis.low, axis.high], nice=False, zero=False)


def _band(curves: Sequence[Sequence[tuple[float, float]]], axis: ScoreAxis) -> list[dict[str, Any]]:
    """Return median and range of some runs at budgets that all of them have used."""
    found = []
    for x in np.linspace(0, min(curve[-1][0] for curve in curves), _STEPS + 1).tolist():
        reached = [[score for at, score in curve if at <= x] for curve in curves]
        bests = [scores[-1] for scores in reached if scores]
        if len(bests) == len(curves):
            low, middle, high = np.quantile(bests, [0, 0.5, 1]).tolist()
            placed = {"low": low, "median": middle, "high": high}
            found.append({"x": x, **{key: axis.place(each)["y"] for key, each in placed.items()}})
    return found


def _bands(names: Sequence[str], bands: Sequence[Row]) -> list[Any]:
    if not bands:
        return []
    chart = alt.Chart(rows("bands"))
    area = chart.mark_area(opacity=0.18, interpolate="step-after").encode(
        x=alt.X("x:Q"),
        y=alt.Y("low:Q", title="Best score"),
        y2=alt.Y2("high:Q"),
        color=line_colours(names)[0],
    )
    median = chart.mark_line(strokeWidth=2.5, interpolate="step-after").encode(
        *line_colours(names),
        x=alt.X("x:Q"),
        y=alt.Y("median:Q", title="Best score"),
        tooltip=[
            alt.Tooltip("series:N"),
            alt.Tooltip("x:Q"),
            alt.Tooltip("low:Q"),
            alt.Tooltip("median:Q"),
            alt.Tooltip("high:Q"),
        ],
    )
    return [area, median]


def _aim_rows(
    aims: Aims, axis: ScoreAxis, most: float, direction: Direction
) -> list[dict[str, Any]]:
    """Return the lines to draw; the best known score and the target have a word on them."""
    known = sorted(aims.comparable, key=lambda each: direction.key(each.score))
    listed: list[dict[str, Any]] = [
        {"score": each.score, "source": each.source, "kind": "known", "label": ""} for each in known
    ]
    if listed:
        listed[0] |= {"label": "best known"}
    if aims.target is not None:
        target = {"score": aims.target, "source": "target", "kind": "target", "label": "target"}
        listed.append(target)
    return [{**each, "x": 0, "end": most} for each in listed if axis.has(each["score"])]


def _aims(drawn: Sequence[Row]) -> list[Any]:
    if not drawn:
        return []
    layers = []
    for kind, dash, x, align in (
        ("known", [2, 3], "end:Q", "right"),
        ("target", [8, 4], "x:Q", "left"),
    ):
        chart = alt.Chart(rows("aims")).transform_filter(f"datum.kind == '{kind}'")
        rule = chart.mark_rule(color=GREY, strokeWidth=1.2, strokeDash=dash)
        text = chart.mark_text(
            align=align, baseline="bottom", dx=-3 if align == "right" else 3, dy=-2
        )
        layers += [
            rule.encode(
                y=alt.Y("score:Q"), tooltip=[alt.Tooltip("source:N"), alt.Tooltip("score:Q")]
            ),
            text.encode(x=alt.X(x), y=alt.Y("score:Q"), text=alt.Text("label:N")),
        ]
    return layers


def _note(aims: Aims, axis: ScoreAxis, is_grouped: bool, *, is_first: bool) -> str:
    if not is_first:  # the others stand beside it
        return ""
    parts = []
    known = [f"{number(each.score)} ({each.source})" for each in aims.comparable]
    if known:
        parts.append(f"Dotted: published scores that compare, {'; '.join(known)}.")
    if aims.target is not None:
        parts.append(f"Dashed: the target, {number(aims.target)}.")
    if any(not axis.has(each.score) for each in aims.comparable):
        parts.append("Those that are far off are not on the axis.")
    if is_grouped:
        parts.append(
            "Thick: the median of a group's runs, in the band from the lowest to the highest, as "
            "far as all of them went; thin: the runs."
        )
    return " ".join(parts)

"""Runs beside each other: what each group of runs reached, with median and interval."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from engine.core import Direction
from engine.report.analysis.figures import Table, median_interval
from engine.report.figures.figure import Figure, Row
from engine.report.figures.style import PALETTE, finished, number, percent, rows
from engine.report.figures.thinning import score_axis


def comparison(ends: Sequence[Row], *, direction: Direction, series: Mapping[str, str]) -> Figure:
    """Return the best score of each run by its group.

    Args:
        ends: what each run has used, and reached.
        direction: of the score.
        series: the group of each run.
    """
    groups: dict[str, list[float]] = {}
    for end in ends:
        groups.setdefault(series[end["run"]], []).append(end["best"])
    axis = score_axis([end["best"] for end in ends], direction)
    points = [
        {
            "group": series[end["run"]],
            "run": end["run"],
            "score": end["best"],
            **axis.place(end["best"]),
        }
        for end in ends
    ]
    listed: list[dict[str, Any]] = [
        {"group": name, "runs": len(bests), **median_interval(bests)}
        for name, bests in groups.items()
    ]
    intervals = [
        {"group": row["group"]}
        | {key: axis.place(row[key])["y"] for key in ("median", "low", "high")}
        for row in listed
    ]
    scale = alt.Scale(domain=[axis.low, axis.high], nice=False, zero=False)
    y = alt.Y(
        "group:N",
        title=None,
        sort=None,
        axis=alt.Axis(labelLimit=320, labelExpr="split(datum.label, ', ')"),
    )
    interval = (
        alt.Chart(rows("intervals"))
        .mark_rule(strokeWidth=3, color=PALETTE[0])
        .encode(x=alt.X("low:Q", title="Best score", scale=scale), x2=alt.X2("high:Q"), y=y)
    )
    median = (
        alt.Chart(rows("intervals"))
        .mark_tick(thickness=4, size=22, color=PALETTE[0])
        .encode(
            x=alt.X("median:Q", scale=scale),
            y=y,
            tooltip=[alt.Tooltip("group:N"), alt.Tooltip("median:Q")],
        )
    )
    point = (
        alt.Chart(rows("points"))
        .mark_point(size=45, color=PALETTE[1], strokeWidth=1.6, opacity=0.9)
        .encode(
            x=alt.X("y:Q", scale=scale), y=y, tooltip=[alt.Tooltip("run:N"), alt.Tooltip("score:Q")]
        )
    )
    said = "; ".join(f"{row['group']}: {number(row['median'])}" for row in listed[:8])
    return Figure(
        name="comparison",
        title="Best score of each group of runs",
        alt=f"Medians with intervals; {'higher' if direction is Direction.MAXIMISE else 'lower'} "
        f"is better. {said}.",
        note="Circles: the runs. Tick: their median. Line: an interval that holds the median of "
        "such runs with 95 %, or all of the runs' range where they are fewer than 6; the table has "
        "its confidence. Runs of a group differ in nothing but the seed.",
        spec=finished(alt.layer(interval, median, point), height=max(70, 44 * len(groups))),
        data={"intervals": intervals, "points": points},
        table=Table(
            title="",
            rows=[{**row, "confidence": percent(row["confidence"])} for row in listed],
        ),
    )

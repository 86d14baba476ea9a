"""Figures of section 6: medians with quartiles as lines in bands, and a grid of distance and K."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from engine.report.analysis.figures import Table
from engine.report.figures.figure import Figure, Row
from engine.report.figures.style import dots, finished, line_colours, number
from engine.report.figures.style import rows as named


def bands(found: Sequence[Row], *, x: str, y: str, name: str, title: str) -> Figure:
    """Return lines of medians in bands of quartiles.

    Args:
        found: rows with ``series``, ``x``, ``y``, and ``y`` with ``_q1`` and ``_q3``.
        x: a column of whole numbers.
        y: a column; rows without a value are left out.
        name: of the figure.
        title: of the figure.
    """
    drawn = [
        {
            "series": row["series"],
            "x": row[x],
            "median": row[y],
            "low": row[f"{y}_q1"],
            "high": row[f"{y}_q3"],
        }
        for row in found
        if row[y] is not None
    ]
    names = list(dict.fromkeys(row["series"] for row in drawn))
    base = alt.Chart(named("rows"))
    at = alt.X("x:Q", title=x, axis=alt.Axis(tickMinStep=1, format="d"))
    area = base.mark_area(opacity=0.15).encode(
        x=at, y=alt.Y("low:Q", title=y), y2=alt.Y2("high:Q"), color=line_colours(names)[0]
    )
    line = base.mark_line(strokeWidth=2, point=dots()).encode(
        *line_colours(names), x=at, y=alt.Y("median:Q", title=y)
    )
    ends = {row["series"]: row for row in drawn}
    said = "; ".join(f"{each}: {number(row['median'])}" for each, row in ends.items())
    return Figure(
        name=name,
        title=title,
        alt=f"Lines of medians in bands of quartiles; at their ends {said}",
        spec=finished(alt.layer(area, line)),
        data={"rows": drawn},
        table=Table(title="", rows=drawn),
    )


def heatmap(found: Sequence[Row], *, name: str) -> Figure:
    """Return how often calls improve, by decile of the distance of what they show, and K."""
    drawn: list[dict[str, Any]] = [
        {
            "decile": row["decile"],
            "K": row["K"],
            "improving": float(row["improving"]),
            "calls": row["calls"],
        }
        for row in found
    ]
    chart = (
        alt.Chart(named("rows"))
        .mark_rect()
        .encode(
            x=alt.X("decile:O", title="Decile of the distance, 1 the nearest"),
            y=alt.Y("K:O", sort="descending"),
            color=alt.Color(
                "improving:Q", title="Calls that improve", scale=alt.Scale(domainMin=0)
            ),
        )
    )
    best = max(drawn, key=lambda row: row["improving"])
    return Figure(
        name=name,
        title="Calls with an improvement, by the parent's distance from what is shown, and K",
        alt=f"A grid; most at decile {best['decile']} with K = {best['K']}",
        note="Within a run, then the median over the runs.",
        spec=finished(chart, height=max(60, 26 * len({row["K"] for row in drawn}))),
        data={"rows": drawn},
        table=Table(title="", rows=drawn),
    )

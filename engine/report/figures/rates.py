"""How often children were better than their parents: by operator, by K, call after call."""

from collections.abc import Sequence

import altair as alt

from engine.report.analysis.figures import Table
from engine.report.figures.figure import Figure, Row
from engine.report.figures.style import (
    PALETTE,
    colours,
    dots,
    finished,
    line_colours,
    percent,
    rows,
)
from engine.report.figures.thinning import thinned

_POINTS = 1000
_WINDOWS = 24  # of calls
_NAMED = 28  # characters of a name on an axis


def improvement(found: Sequence[Row], *, key: str, name: str, words: str) -> Figure | None:
    """Return the improvement rate of each group of children, with its interval.

    Args:
        found: rows with ``key``, ``children``, ``rate``, ``from`` and ``to``.
        key: the column that names a group.
        name: of the figure.
        words: what a group is, such as ``operator``.
    """
    if not found:
        return None
    bars = [
        {
            "group": str(row[key]),
            "rate": float(row["rate"]),
            "low": float(row["from"]),
            "high": float(row["to"]),
            "children": row["children"],
        }
        for row in found
    ]
    y = alt.Y("group:N", title=words, sort=None, axis=alt.Axis(labelLimit=7 * _NAMED))
    scale = alt.Scale(domainMin=0)
    x = alt.X("rate:Q", title="Children better than their parent", scale=scale)
    tooltip = [
        "group:N",
        "children:Q",
        *(alt.Tooltip(f"{each}:Q", format=".2%") for each in _RATES),
    ]
    base = alt.Chart(rows("rates"))
    interval = base.mark_rule(strokeWidth=2, color=PALETTE[0]).encode(
        x=alt.X("low:Q", title="Children better than their parent", axis=alt.Axis(format=".1%")),
        x2=alt.X2("high:Q"),
        y=y,
    )
    point = base.mark_point(filled=True, size=70, color=PALETTE[0], opacity=1).encode(
        x=x, y=y, tooltip=tooltip
    )
    listed = ", ".join(f"{each['group']} {percent(each['rate'])}" for each in bars[:8])
    return Figure(
        name=name,
        title=f"Improvement by {words}",
        alt=f"A point with an interval for each {words}: {listed}.",
        note="The line is the 95 % Wilson interval, which takes children for independent.",
        spec=finished(alt.layer(interval, point), height=max(60, 28 * len(bars))),
        data={"rates": bars},
        table=Table(
            title="",
            rows=[
                {words: row[key], **{each: row[each] for each in (*_COUNTS, "rate", "from", "to")}}
                for row in found
            ],
        ),
    )


_RATES = ("rate", "low", "high")
_COUNTS = ("children", "evaluated", "valid", "improved", "new_bests")


def widths(calls: Sequence[Row]) -> Figure | None:
    """Return the K of each call; None where it never changed."""
    if len({row["k"] for row in calls}) < 2:
        return None
    points = [
        {"call": row["iteration"], "k": row["k"], "series": f"island {row['island']}"}
        for row in thinned(calls, _POINTS)
    ]
    names = sorted({row["series"] for row in points}, key=lambda name: (len(name), name))
    chart = (
        alt.Chart(rows("points"))
        .mark_point(filled=True, size=28, opacity=0.6)
        .encode(
            x=alt.X("call:Q", title="Call"),
            y=alt.Y("k:Q", title="K (children)", axis=alt.Axis(tickMinStep=1)),
            color=colours(names) if len(names) <= len(PALETTE) else alt.value(PALETTE[0]),
            tooltip=[alt.Tooltip("call:Q"), alt.Tooltip("k:Q"), alt.Tooltip("series:N")],
        )
    )
    counts = {k: sum(row["k"] == k for row in calls) for k in sorted({row["k"] for row in calls})}
    common = max(counts, key=lambda k: counts[k])
    return Figure(
        name="k",
        title="Children asked for in each call",
        alt=f"Points: K from {min(counts)} to {max(counts)}, most often {common}.",
        spec=finished(chart, height=180),
        data={"points": points},
        table=Table(title="", rows=[{"K": k, "calls": count} for k, count in counts.items()]),
    )


def yields(calls: Sequence[Row]) -> Figure | None:
    """Return the shares of judged children with a score and of better ones, in windows of calls."""
    made = [row for row in calls if row["judged"]]
    if len(made) < 2:
        return None
    size = -(-len(made) // _WINDOWS)
    windows = [made[first : first + size] for first in range(0, len(made), size)]
    names = ["has a score", "better than its parent"]
    listed = []
    for window in windows:
        judged = sum(row["judged"] for row in window)
        shares = [sum(row[each] for row in window) / judged for each in ("scored", "improved")]
        listed.append(
            {
                "calls": f"{window[0]['iteration']} to {window[-1]['iteration']}",
                "call": window[0]["iteration"],
                "adapter": window[-1]["adapter"],
                **dict(zip(names, shares, strict=True)),
            }
        )
    lines = [
        {"call": row["call"], "series": name, "share": row[name], "calls": row["calls"]}
        for row in listed
        for name in names
    ]
    chart = (
        alt.Chart(rows("lines"))
        .mark_line(point=dots())
        .encode(
            *line_colours(names),
            x=alt.X("call:Q", title="Call (first of a window)"),
            y=alt.Y("share:Q", title="Share of the children", axis=alt.Axis(format="%")).scale(
                domainMin=0
            ),
            tooltip=[
                alt.Tooltip("calls:N"),
                alt.Tooltip("series:N"),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        )
    )
    first, last = listed[0], listed[-1]
    said = "; ".join(
        f"{each}: from {percent(first[each])} to {percent(last[each])}" for each in names
    )
    return Figure(
        name="yields",
        title="What calls brought, in their order",
        alt=f"Two lines. {said}.",
        note=f"In windows of {size:,} calls. Parents get better, so improving becomes harder.",
        spec=finished(chart),
        data={"lines": lines},
        table=Table(
            title="",
            rows=[
                {"calls": row["calls"], "adapter": row["adapter"]}
                | {each: percent(row[each]) for each in names}
                for row in listed
            ],
        ),
    )

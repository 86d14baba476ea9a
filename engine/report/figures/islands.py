"""The best score of each island, and the programs that came to it from others."""

from collections.abc import Sequence

import altair as alt

from engine.core import Direction
from engine.report.analysis.figures import Table
from engine.report.figures.figure import Figure, Row
from engine.report.figures.style import GREY, PALETTE, finished, line_colours, number, rows
from engine.report.figures.thinning import score_axis, thinned

_MOST = 300  # points of a line, and marks of arrivals


def islands(
    bests: Sequence[Row], arrivals: Sequence[Row], *, end: float, direction: Direction
) -> Figure | None:
    """Return a line for each island; None for a run with one, or without a program of its own.

    Args:
        bests: of one run, the new bests of each island.
        arrivals: programs of other islands, when first chosen as a parent.
        end: candidates of the whole run.
        direction: of the score.
    """
    numbers = sorted({row["island"] for row in bests})
    if len(numbers) < 2:
        return None
    axis = score_axis([row["best"] for row in bests], direction)
    names = [f"island {number}" for number in numbers]
    lines = []
    listed = []
    for island, name in zip(numbers, names, strict=True):
        own = [row for row in bests if row["island"] == island]
        curve = [(row["candidates"], row["best"]) for row in thinned(own, _MOST)]
        curve.append((end, own[-1]["best"]))
        lines += [{"series": name, "x": x, **axis.place(best)} for x, best in curve]
        came = sum(row["island"] == island for row in arrivals)
        listed.append({"island": island, "best": own[-1]["best"], "from_others": came})
    marks = [
        {
            "x": row["candidates"],
            **axis.place(row["score"]),
            "id": row["id"],
            "from": f"island {row['from_island']}",
            "series": f"island {row['island']}",
        }
        for row in thinned(arrivals, _MOST)
        if row["island"] in numbers
    ]
    many = len(names) > len(PALETTE)
    scale = alt.Scale(domain=[axis.low, axis.high], nice=False, zero=False)
    x = alt.X("x:Q", title="Evaluated candidates")
    y = alt.Y("y:Q", title="Score", scale=scale)
    line = alt.Chart(rows("lines")).mark_line(interpolate="step-after", strokeWidth=1.8)
    line = line.encode(
        x=x,
        y=y,
        detail=alt.Detail("series:N"),
        tooltip=[alt.Tooltip("series:N"), alt.Tooltip("x:Q"), alt.Tooltip("y:Q")],
    )
    mark = alt.Chart(rows("marks")).mark_point(shape="diamond", size=55, strokeWidth=1.5)
    mark = mark.encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip("id:N"),
            alt.Tooltip("from:N"),
            alt.Tooltip("series:N"),
            alt.Tooltip("y:Q"),
        ],
    )
    if many:
        line, mark = (each.encode(color=alt.value(GREY)) for each in (line, mark))
    else:
        line, mark = line.encode(*line_colours(names)), mark.encode(line_colours(names)[0])
    said = ", ".join(f"{row['island']}: {number(row['best'])}" for row in listed[:8])
    return Figure(
        name="islands",
        title="Best program of each island, and migrants",
        alt=f"Step lines of {len(names)} islands. Best of each: {said}.",
        note="A line has the best program that the island made itself. A diamond is a program of "
        "another island, in the colour of the island that first chose it as a parent, at the "
        "candidates by which it was evaluated.",
        spec=finished(alt.layer(line, mark)),
        data={"lines": lines, "marks": marks},
        table=Table(title="", rows=listed),
    )

"""The archive as a heat map: the best score in each cell of its first two features."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import altair as alt

from engine.core import Direction
from engine.report.analysis.figures import Table
from engine.report.figures.figure import Figure, Row
from engine.report.figures.style import GREY, finished, number, rows
from engine.report.figures.thinning import score_axis


def archive(cells: Sequence[Row], *, direction: Direction) -> Figure | None:
    """Return the filled cells of one run; None where there are none."""
    if not cells:
        return None
    is_flat = "feature_2" not in cells[0]
    drawn = _best(cells, direction, is_flat=is_flat)
    axis = score_axis([cell["score"] for cell in drawn], direction)
    scheme = alt.Scale(
        scheme="viridis",
        domain=[axis.low, axis.high],
        clamp=True,
        reverse=direction is Direction.MINIMISE,
    )
    colour = alt.Color("score:Q", title="Best score", scale=scheme)
    names = [cells[0]["feature_1"], "" if is_flat else cells[0]["feature_2"]]
    y = alt.Y("low_2:Q", bin="binned", title=names[1] or None, axis=None if is_flat else alt.Axis())
    chart = (
        alt.Chart(rows("cells"))
        .mark_rect(stroke=GREY, strokeWidth=0.4)
        .encode(
            x=alt.X("low_1:Q", bin="binned", title=names[0]),
            x2=alt.X2("high_1:Q"),
            y=y,
            y2=alt.Y2("high_2:Q"),
            color=colour,
            tooltip=[
                alt.Tooltip("id:N"),
                alt.Tooltip("score:Q"),
                alt.Tooltip("programs:Q"),
                alt.Tooltip("low_1:Q"),
                alt.Tooltip("low_2:Q"),
            ],
        )
    )
    best = min(drawn, key=lambda cell: direction.key(cell["score"]))
    more = sum(key.startswith("feature_") for key in cells[0]) > 2
    return Figure(
        name="archive",
        title="Archive: the best program in each cell",
        alt=f"A heat map of {len(drawn)} filled cells by {' and '.join(filter(None, names))}. "
        f"The best score, {number(best['score'])}, is in the cell that begins at "
        f"{number(best['low_1'])}{'' if is_flat else ', ' + number(best['low_2'])}.",
        note="The other features are left out: a cell here has the best over them." if more else "",
        spec=finished(chart, height=80 if is_flat else 300),
        data={"cells": drawn},
        table=Table(
            title="",
            rows=[
                {
                    f"{names[0]}_from": cell["low_1"],
                    **({} if is_flat else {f"{names[1]}_from": cell["low_2"]}),
                    **{key: cell[key] for key in ("score", "id", "programs")},
                }
                for cell in drawn
            ],
        ),
    )


def _best(cells: Sequence[Row], direction: Direction, *, is_flat: bool) -> list[dict[str, Any]]:
    """Return the best cell for each pair of bins of the first two features."""
    best: dict[tuple[int, int], dict[str, Any]] = {}
    programs = Counter[tuple[int, int]]()
    for cell in cells:
        place = cell["bin_1"], 0 if is_flat else cell["bin_2"]
        programs[place] += cell["programs"]
        kept = {key: cell[key] for key in ("id", "score", "low_1", "high_1")}
        kept |= {"low_2": 0.0, "high_2": 1.0} if is_flat else {}
        kept |= {} if is_flat else {key: cell[key] for key in ("low_2", "high_2")}
        if place not in best or direction.better(cell["score"], best[place]["score"]):
            best[place] = kept
    return [cell | {"programs": programs[place]} for place, cell in best.items()]

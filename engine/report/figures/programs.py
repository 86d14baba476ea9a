"""Programs as points: the lineage in the order of generation, and every program by its time."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import altair as alt

from engine.core import Direction
from engine.report.analysis.figures import Table
from engine.report.figures.figure import Figure, Row
from engine.report.figures.style import ACCENT, GREY, clock, colours, finished, number, rows
from engine.report.figures.thinning import ScoreAxis, score_axis, scores_of, thinned

_POINTS = 1500
_SERIES = 8  # colours
_TOOLTIP = ("id:N", "score:Q", "operator:N", "island:N", "order:Q", "seconds:Q")


def lineage(
    programs: Sequence[Row], *, direction: Direction, path: Collection[str]
) -> Figure | None:
    """Return who came from whom; None where no child has a score.

    Args:
        programs: of one run, in the order of generation.
        direction: of the score.
        path: ids of the best program and its ancestors.
    """
    scored, path = [row for row in programs if row["score"] is not None], frozenset(path)
    if len(scored) < 2:
        return None
    axis = score_axis(scores_of(scored), direction)
    by_id = {row["id"]: row for row in scored}
    drawn = thinned(scored, _POINTS, keep=lambda row: row["id"] in path or row["new_best"])
    nodes = [_point(row, axis, f"island {row['island']}") for row in drawn if row["id"] not in path]
    best = [_point(row, axis, "") for row in drawn if row["id"] in path]
    edges = [_edge(row, by_id, axis) for row in drawn if row["parent"] in by_id]
    names = _names(nodes)
    x = alt.X("order:Q", title="Order of generation (programs)")
    y = _score(axis)
    lines = (
        alt.Chart(rows("edges")).mark_rule().encode(x=x, y=y, x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q"))
    )
    far = lines.transform_filter("!datum.path").encode(
        color=alt.value(GREY), opacity=alt.value(0.2)
    )
    near = lines.transform_filter("datum.path").encode(
        color=alt.value(ACCENT), strokeWidth=alt.value(2.5)
    )
    points = _points("nodes", x, y, names, "Made by")
    ends = (
        alt.Chart(rows("best"))
        .mark_point(filled=True, size=60, color=ACCENT, stroke="white", strokeWidth=1, opacity=1)
        .encode(x=x, y=y, tooltip=[alt.Tooltip(each) for each in _TOOLTIP])
    )
    edges = [edge | {"path": edge["id"] in path} for edge in edges]
    return Figure(
        name="lineage",
        title="Lineage: each program and its parent",
        alt=f"Points for {len(drawn):,} of {len(scored):,} programs with a score, joined to their "
        f"parents; {len(path)} of them, the best one and its ancestors, stand out.",
        note=_note(axis, scored, drawn)
        + "Orange: the best program and its ancestors. A program of a crossover has a second "
        "parent, which is not drawn.",
        spec=finished(alt.layer(far, near, points, ends), height=320),
        data={"edges": edges, "nodes": nodes, "best": best},
        table=_table([row for row in scored if row["id"] in path]),
    )


def by_time(programs: Sequence[Row], *, direction: Direction) -> Figure | None:
    """Return every program with a score by the time of its verdict; None where there is none."""
    scored = [row for row in programs if row["score"] is not None]
    if not scored:
        return None
    axis = score_axis(scores_of(scored), direction)
    unit, divisor = clock(max(row["seconds"] for row in scored))
    drawn = thinned(scored, _POINTS, keep=lambda row: row["new_best"])
    points = [
        {**_point(row, axis, row["operator"] or "begin"), "time": row["seconds"] / divisor}
        for row in drawn
    ]
    x = alt.X("time:Q", title=f"Wall time of the verdict ({unit})")
    return Figure(
        name="programs",
        title="Programs by score and time",
        alt=f"Points for {len(drawn):,} of {len(scored):,} programs with a score. The best has "
        f"{number(_best(scored, direction)['score'])}.",
        note=_note(axis, scored, drawn) + "A click on a point shows the program below.",
        spec=finished(_points("points", x, _score(axis), _names(points), "Made by"), height=320),
        data={"points": points},
        table=_table([row for row in scored if row["new_best"]]),
    )


def _point(row: Row, axis: ScoreAxis, series: str) -> dict[str, Any]:
    kept = {key: row[key] for key in ("id", "score", "operator", "island", "order")}
    series = "begin" if row["island"] is None else series
    return {
        **kept,
        "seconds": round(row["seconds"], 2),
        "series": series,
        **axis.place(row["score"]),
    }


def _edge(row: Row, by_id: Mapping[str, Row], axis: ScoreAxis) -> dict[str, Any]:
    parent = by_id[row["parent"]]
    return {
        "id": row["id"],
        "order": row["order"],
        "y": axis.place(row["score"])["y"],
        "x2": parent["order"],
        "y2": axis.place(parent["score"])["y"],
    }


def _points(data: str, x: Any, y: Any, names: Sequence[str], title: str) -> Any:
    shape = alt.Shape(
        "place:N",
        scale=alt.Scale(domain=["on the axis", "off the axis"], range=["circle", "triangle-down"]),
        legend=None,
    )
    colour = colours(names, title) if len(names) <= _SERIES else alt.value(GREY)
    return (
        alt.Chart(rows(data))
        .mark_point(filled=True, size=26, opacity=0.65)
        .encode(
            x=x, y=y, color=colour, shape=shape, tooltip=[alt.Tooltip(each) for each in _TOOLTIP]
        )
    )


def _score(axis: ScoreAxis) -> Any:
    scale = alt.Scale(domain=[axis.low, axis.high], nice=False, zero=False)
    return alt.Y("y:Q", title="Score", scale=scale)


def _names(points: Sequence[Row]) -> list[str]:
    names = {row["series"] for row in points}
    return sorted(names, key=lambda name: (name == "begin", len(name), name))


def _note(axis: ScoreAxis, scored: Sequence[Row], drawn: Sequence[Row]) -> str:
    off = sum(not axis.has(row["score"]) for row in scored)
    parts = []
    if len(drawn) < len(scored):
        parts.append(f"{len(drawn):,} of {len(scored):,} programs are drawn. ")
    if off:
        parts.append(f"{off:,} far worse scores are triangles at the edge. ")
    return "".join(parts)


def _best(scored: Sequence[Row], direction: Direction) -> Row:
    return min(scored, key=lambda row: direction.key(row["score"]))


def _table(listed: Sequence[Row]) -> Table:
    keys = ("id", "parent", "operator", "island", "seconds", "score", "gain")
    return Table(title="", rows=[{key: row[key] for key in keys} for row in listed])

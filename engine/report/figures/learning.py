"""The steps of training: reward, distances in nats, gradient norm, shares."""

from collections.abc import Sequence

import altair as alt

from engine.report.analysis.figures import Table
from engine.report.figures.figure import Figure, Row
from engine.report.figures.style import PALETTE, dots, finished, line_colours, number, rows
from engine.report.figures.thinning import thinned

_MOST = 400  # steps that are drawn
_HEIGHT = 200
_FIGURES = {
    "reward": ("Reward of the children", "Reward (mean)", ("reward",)),
    "nats": ("Entropy, divergence, mismatch", "Nats a token", ("entropy", "kl", "mismatch")),
    "gradient": ("Gradient norm, before clipping", "Norm", ("gradient",)),
    "shares": ("Clipped, new and repeated", "Share", ("clipped", "unique", "common")),
}
"""By name: the title, that of the axis, and the columns of the steps."""
_NOTES = {
    "nats": "kl: from the model itself; mismatch: between the sampler's and the trainer's "
    "log-probabilities.",
    "shares": "clipped: of the tokens; unique: of the children, valid and unlike all before; "
    "common: share of the most frequent answer.",
}


def learning(steps: Sequence[Row]) -> list[Figure]:
    """Return the figures of one run's steps; none where nothing was learned."""
    return [_figure(name, steps) for name in _FIGURES] if steps else []


def _figure(name: str, steps: Sequence[Row]) -> Figure:
    title, axis, columns = _FIGURES[name]
    drawn = thinned(steps, _MOST, keep=lambda row: bool(row["fate"]))
    lines = [
        {
            "step": row["step"],
            "series": column,
            "value": float(row[column]),
            "fate": row["fate"] or "stands",
        }
        for row in drawn
        for column in columns
    ]
    y = alt.Y("value:Q", title=axis, scale=alt.Scale(zero=name == "shares"))
    if name == "shares":
        y = y.axis(format="%")
    base = alt.Chart(rows("lines")).encode(
        x=alt.X("step:Q", title="Step of training", axis=alt.Axis(tickMinStep=1)), y=y
    )
    line = (
        base.mark_line(point=dots())
        .encode(
            *line_colours(columns),
            tooltip=[alt.Tooltip("step:Q"), alt.Tooltip("series:N"), alt.Tooltip("value:Q")],
        )
        .transform_filter("datum.fate == 'stands'")
    )
    cross = (
        base.mark_point(shape="cross", angle=45, size=70, filled=True, color=PALETTE[1], opacity=1)
        .encode(y=alt.value(_HEIGHT - 5), tooltip=[alt.Tooltip("step:Q"), alt.Tooltip("fate:N")])
        .transform_filter("datum.fate != 'stands'")
    )
    last = ", ".join(f"{column} {number(float(steps[-1][column]))}" for column in columns)
    failed = sum(bool(row["fate"]) for row in steps)
    listed = ("step", "version", "fate", *columns)
    return Figure(
        name=f"learning-{name}",
        title=title,
        alt=f"Lines over {len(steps)} steps of training, {failed} of them skipped or rolled back. "
        f"At the last one: {last}.",
        note=f"{_NOTES.get(name, '')} Crosses: steps that were skipped or rolled back.".strip(),
        spec=finished(alt.layer(line, cross), height=_HEIGHT),
        data={"lines": lines},
        table=Table(title="", rows=[{key: row[key] for key in listed} for row in steps]),
    )

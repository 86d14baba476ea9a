"""How all figures look: colours, fonts, axes.

The colours are Okabe and Ito's ("Color Universal Design", 2008), told apart with any colour vision;
the darker ones come first, which stand out on white and on black. Where two lines have colours,
they have dashes too. Text and axes take the colour of the page's text.

Channels are written as objects: Altair takes 7 ms for one that is given as a string.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from engine.report.figures.figure import Spec

PALETTE = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    *("#E69F00", "#56B4E9", "#8C564B", "#B8A800"),
)
GREY = "#8A8A8A"
ACCENT = PALETTE[1]
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [4, 4], [1, 3], [10, 2, 2, 2, 2, 2])
HEIGHT = 260
_ROW = 80  # characters of a legend's row

CONFIG: Mapping[str, Any] = {
    "aria": False,  # the page gives each figure its words; one for each mark would drown them
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 12,
        "gridColor": GREY,
        "gridOpacity": 0.25,
        "domainColor": GREY,
        "tickColor": GREY,
        "labelOverlap": True,
    },
    "legend": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 12,
        "labelLimit": 600,
        "orient": "top",
        "symbolOpacity": 1,
    },
    "text": {"color": "currentColor", "fontSize": 11},
}


def finished(chart: Any, *, height: int = HEIGHT) -> Spec:
    """Return a chart as a specification of its container's width."""
    spec: Spec = chart.properties(width="container", height=height).to_dict(validate=False)
    spec["config"] = dict(CONFIG)
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    return spec


def rows(name: str) -> Any:
    """Return the data of a figure by their name."""
    return alt.NamedData(name=name)


def colours(names: Sequence[str], title: str | None = None) -> Any:
    """Return the channel that gives each of the names its colour; no legend for a single one."""
    return alt.Color("series:N", scale=_scale(names, [*PALETTE]), legend=legend(names, title))


def line_colours(names: Sequence[str]) -> list[Any]:
    """Return the channels that give each of the names its colour and its dashes."""
    shared = legend(names, symbolType="stroke", symbolStrokeWidth=2, symbolSize=300)
    return [
        alt.Color("series:N", scale=_scale(names, [*PALETTE]), legend=shared),
        alt.StrokeDash("series:N", scale=_scale(names, [*DASHES]), legend=shared),
    ]


def dots() -> Any:
    """Return the points on a line, which have no dashes."""
    return alt.OverlayMarkDef(size=22, strokeWidth=0)


def legend(names: Sequence[str], title: str | None = None, **looks: Any) -> Any:
    """Return a legend whose names have room; None for a single one."""
    longest = max(map(len, names), default=0)
    columns = max(1, min(4, _ROW // max(1, longest + 4)))
    return alt.Legend(title=title, columns=columns, **looks) if len(names) > 1 else None


def _scale(names: Sequence[str], values: list[Any]) -> Any:
    repeated = [values[number % len(values)] for number in range(len(names))]
    return alt.Scale(domain=list(names), range=repeated)


def clock(seconds: float) -> tuple[str, float]:
    """Return the unit in which so many seconds are read, and how many seconds it has."""
    if seconds < 300:
        return "seconds", 1.0
    return ("minutes", 60.0) if seconds < 3 * 3600 else ("hours", 3600.0)


def number(value: float | None) -> str:
    """Return a number as a sentence has it."""
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def percent(value: float | None) -> str:
    """Return a share as a sentence has it."""
    return "none" if value is None else f"{value:.1%}"

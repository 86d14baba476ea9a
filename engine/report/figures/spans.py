"""What goes on over a run's time: the fate of children, cached prompt tokens, who is busy."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import altair as alt

from engine.core import Miss
from engine.report.analysis.figures import Table
from engine.report.figures.figure import Figure, Row
from engine.report.figures.style import (
    GREY,
    PALETTE,
    clock,
    dots,
    finished,
    legend,
    line_colours,
    percent,
    rows,
)

_OTHER = "other"
_KINDS = 7  # of outcomes with a colour of their own


def outcomes(found: Sequence[Row]) -> Figure | None:
    """Return what became of the children of each span; None where there are none."""
    if not found:
        return None
    counts: Counter[str] = Counter()
    for row in found:
        counts[_outcome(row)] += row["children"]
    common = [name for name, _ in counts.most_common()]
    named = [name for name in common if name != "scored"][: _KINDS - ("scored" in counts)]
    names = [*(["scored"] if "scored" in counts else []), *named]
    unit, divisor = clock(max(row["until"] for row in found))
    drawn: Counter[tuple[float, float, str]] = Counter()
    for row in found:
        name = _outcome(row)
        key = row["since"] / divisor, row["until"] / divisor, name if name in names else _OTHER
        drawn[key] += row["children"]
    shown = [*names, *([_OTHER] if len(names) < len(counts) else [])]
    bars = [
        {
            "since": since,
            "until": until,
            "series": name,
            "children": children,
            "rank": shown.index(name),
        }
        for (since, until, name), children in drawn.items()
    ]
    total = sum(counts.values())
    listed = [
        {"outcome": name, "children": count, "share": percent(count / total)}
        for name, count in counts.most_common()
    ]
    return Figure(
        name="outcomes",
        title="What became of the children, over time",
        alt="Stacked bars of children by outcome. In all: "
        + ", ".join(f"{each['outcome']} {each['share']}" for each in listed[:6])
        + ".",
        spec=finished(_stacked(shown, "children", f"Children in {_span(found)}", unit)),
        data={"bars": bars},
        table=Table(title="", rows=listed),
    )


def _outcome(row: Row) -> str:
    return f"{row['outcome']}: {row['reason']}" if row["reason"] else str(row["outcome"])


def _span(found: Sequence[Row]) -> str:
    seconds = found[0]["until"] - found[0]["since"]
    unit, divisor = clock(seconds)
    return f"{seconds / divisor:.3g} {unit}"


def _stacked(names: Sequence[str], field: str, title: str, unit: str) -> Any:
    range_ = [GREY if name == _OTHER else PALETTE[i % len(PALETTE)] for i, name in enumerate(names)]
    scale = alt.Scale(domain=list(names), range=range_)
    return (
        alt.Chart(rows("bars"))
        .mark_bar(binSpacing=0.5)
        .encode(
            x=alt.X("since:Q", bin="binned", title=f"Wall time ({unit})"),
            x2=alt.X2("until:Q"),
            y=alt.Y(f"{field}:Q", title=title, stack="zero"),
            color=alt.Color("series:N", scale=scale, legend=legend(names)),
            order=alt.Order("rank:Q"),
            tooltip=[
                alt.Tooltip("series:N"),
                alt.Tooltip(f"{field}:Q"),
                alt.Tooltip("since:Q"),
                alt.Tooltip("until:Q"),
            ],
        )
    )


def prompts(found: Sequence[Row]) -> list[Figure]:
    """Return the hit rate of the prefix cache, and the computed tokens by cause."""
    asked = [row for row in found if row["prompt_tokens"]]
    if not asked:
        return []
    unit, divisor = clock(max(row["until"] for row in asked))
    tokens = sum(row["prompt_tokens"] for row in asked)
    cached = sum(row["cached_prompt_tokens"] for row in asked)
    middles = [
        {"x": (row["since"] + row["until"]) / 2 / divisor, "rate": row["hit_rate"]} for row in asked
    ]
    line = (
        alt.Chart(rows("rates"))
        .mark_line(point=dots(), color=PALETTE[0])
        .encode(
            x=alt.X("x:Q", title=f"Wall time ({unit})", scale=alt.Scale(domainMin=0)),
            y=alt.Y(
                "rate:Q", title="Hit rate (share of prompt tokens)", axis=alt.Axis(format="%")
            ).scale(domain=[0, 1]),
            tooltip=[alt.Tooltip("x:Q"), alt.Tooltip("rate:Q", format=".1%")],
        )
    )
    rate = Figure(
        name="hit-rate",
        title="Hit rate of the prefix cache",
        alt=f"A line of the share of prompt tokens that the cache served; "
        f"{percent(cached / tokens)} over all children.",
        spec=finished(line),
        data={"rates": middles},
        table=Table(
            title="",
            rows=[
                {"until_seconds": row["until"], "hit_rate": percent(row["hit_rate"])}
                for row in asked
            ],
        ),
    )
    return [rate, *_misses(asked, unit, divisor)]


def _misses(asked: Sequence[Row], unit: str, divisor: float) -> list[Figure]:
    totals = {miss.value: sum(row[miss.value] for row in asked) for miss in Miss}
    names = [name for name, count in totals.items() if count]
    if not names:
        return []
    bars = [
        {
            "since": row["since"] / divisor,
            "until": row["until"] / divisor,
            "series": name,
            "tokens": row[name] / row["children"],
            "rank": rank,
        }
        for row in asked
        for rank, name in enumerate(names)
        if row[name]
    ]
    everything = sum(totals.values())
    listed = [
        {"cause": name, "tokens": totals[name], "share": percent(totals[name] / everything)}
        for name in names
    ]
    title = "Computed prompt tokens per child"
    return [
        Figure(
            name="misses",
            title="Prompt tokens that had to be computed, by cause",
            alt="Stacked bars. In all: "
            + ", ".join(f"{each['cause']} {each['share']}" for each in listed)
            + ".",
            note="cold: the task was new to this session; new: text that no call had held; moved: "
            "known text behind another start; compaction: moved because the history was compacted; "
            "evicted: the cache had lost it; concurrent: another call was still computing it; "
            "adapter: known under another version of the adapter; alignment: the end that fills no "
            "block.",
            spec=finished(_stacked(names, "tokens", title, unit)),
            data={"bars": bars},
            table=Table(title="", rows=listed),
        )
    ]


def busy(found: Sequence[Row]) -> Figure | None:
    """Return how busy model and evaluators were; None without a timeline."""
    if not found:
        return None
    unit, divisor = clock(max(row["until"] for row in found))
    names = ["model", "evaluators"]
    lines = [
        {"x": row["since"] / divisor, "share": min(1.0, row[name]), "series": name}
        for row in found
        for name in names
    ]
    means = {name: sum(row[name] for row in found) / len(found) for name in names}
    chart = (
        alt.Chart(rows("lines"))
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(
            *line_colours(names),
            x=alt.X("x:Q", title=f"Wall time ({unit})", scale=alt.Scale(domainMin=0)),
            y=alt.Y("share:Q", title="Busy (share of the time)", axis=alt.Axis(format="%")).scale(
                domain=[0, 1]
            ),
            tooltip=[
                alt.Tooltip("series:N"),
                alt.Tooltip("x:Q"),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        )
    )
    return Figure(
        name="busy",
        title="Model and evaluators at work",
        alt=f"Two lines of shares of the time: on average the model was busy for "
        f"{percent(means['model'])} of it, an evaluator for {percent(means['evaluators'])}.",
        note="evaluators: the mean over all of them; programs made for idle ones do not count.",
        spec=finished(chart),
        data={"lines": lines},
        table=Table(
            title="", rows=[{"who": name, "busy": percent(mean)} for name, mean in means.items()]
        ),
    )

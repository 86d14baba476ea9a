"""Writes docs/scale.md: how far a cluster scales, what of it was measured and what simulated.

Reads what ``bench.scale.check``, ``bench.outposts`` and ``bench.scale`` print last, kept in
``results`` as ``scale-check*.json``, ``outposts.json`` and ``scale-NAME.json``.

Usage: python -m bench.scale.page [results=bench/results] [to=docs]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import vl_convert

from bench.options import read_options, run_as_command
from engine.core import UserError
from engine.documents import read_json
from engine.durable import write_whole

DEFAULTS = {"results": "bench/results", "to": "docs"}
IMAGES = "images/scale"
_HEAD = Path(__file__).with_name("head.md")
_COSTS = ("call", "beside", "loop", "evaluation", "commit", "lookup", "read", "report")
Found = Mapping[str, Any]


def main(arguments: Sequence[str]) -> None:
    """Write the page and its pictures."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    results, to = Path(options["results"]), Path(options["to"])
    checks = [_found(each) for each in sorted(results.glob("scale-check*.json"))]
    outposts = _found(results / "outposts.json")
    simulated = {
        each.stem.removeprefix("scale-"): _found(each)
        for each in sorted(results.glob("scale-*.json"))
        if not each.stem.startswith("scale-check")
    }
    try:
        (to / IMAGES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{to / IMAGES} can't be made: {error.strerror}; give to=FOLDER") from error
    for name, spec in (("growth", _growth(simulated)), ("migration", _migration(simulated))):
        picture = vl_convert.vegalite_to_svg(spec)
        write_whole(to / IMAGES / f"{name}.svg", picture)
    text = "\n".join(_page(checks, outposts, simulated))
    write_whole(to / "scale.md", text)


def _found(file: Path) -> Any:
    """Return what a benchmark printed last.

    Raises:
        UserError: it was not kept there, or is no JSON.
    """
    try:
        return read_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{file} can't be read: {error}; give results=FOLDER, with what the benchmarks print"
        ) from error


def _page(
    checks: Sequence[Found], outposts: Found, simulated: Mapping[str, Found]
) -> Iterator[str]:
    yield _HEAD.read_text(encoding="utf-8")
    yield "## The simulation against real runs\n"
    yield "| runs | workers | measured, candidates an hour | predicted | predicted over measured |"
    yield "|---|---|---|---|---|"
    for check in checks:
        for row in check["rows"]:
            it = row["measured"]
            yield (
                f"| {_named(check)} | {row['workers']} "
                f"| {it['median']:,.0f} ({it['low']:,.0f} to {it['high']:,.0f}) "
                f"| {row['predicted']:,.0f} | {row['predicted_over_measured']:.2f} |"
            )
    yield "\n## Outposts, measured\n"
    yield (
        "| outposts | evaluators | candidates a second | for each evaluator "
        "| CPU ms of the worker a candidate | of an outpost |"
    )
    yield "|---|---|---|---|---|---|"
    for row in outposts["rows"]:
        cells = [
            f"{row[name]['median']:.1f} ({row[name]['low']:.1f} to {row[name]['high']:.1f})"
            for name in ("candidates_a_second", "of_each_evaluator", "worker_ms", "outpost_ms")
        ]
        count = row["evaluators"]["median"]
        yield f"| {row['outposts']} | {count:.0f} | {' | '.join(cells)} |"
    yield "\n## What the steps cost, measured\n"
    yield f"| milliseconds | {' | '.join(_COSTS)} | transactions a call |"
    yield f"|---|{'---|' * (len(_COSTS) + 1)}"
    for name, found in simulated.items():
        cells = [_milliseconds(found["costs"][each]) for each in _COSTS]
        yield f"| `{name}` | {' | '.join(cells)} | {found['costs']['commits']:.1f} |"
    yield "\n## Growth, simulated\n"
    yield f"![Candidates an hour against workers]({IMAGES}/growth.svg)\n"
    yield "| costs | workers | candidates an hour | of ideal | store busy | islands wait for it |"
    yield "|---|---|---|---|---|---|"
    for name, found in simulated.items():
        one = found["growth"][0]["candidates_an_hour"] / found["growth"][0]["workers"]
        for row in found["growth"]:
            yield (
                f"| `{name}` | {row['workers']:,} | {row['candidates_an_hour']:,.0f} "
                f"| {row['candidates_an_hour'] / one / row['workers']:.0%} "
                f"| {row['store_busy']:.1%} | {row['waiting_for_store']:.1%} |"
            )
    yield "\n## Migration, simulated\n"
    yield f"![Candidates an hour against iterations between migrations]({IMAGES}/migration.svg)\n"
    yield "## Deaths, computed\n"
    for name, found in simulated.items():
        options, lost = found["options"], found["deaths"]
        yield (
            f"- `{name}`, {options['at']} workers that die after {options['life']} h in the mean: "
            f"another one is there after {lost['seconds']:.0f} s, so {lost['share']:.2%} of the "
            "time is lost. A simulated run is too short to see one."
        )
    yield ""


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.0f}" if seconds >= 0.1 else f"{1e3 * seconds:.3g}"


def _named(check: Found) -> str:
    options = check["options"]
    store = "PostgreSQL" if options["store"] else "files"
    return f"`model={options['model']}`, {options['islands']} islands a worker, {store}"


def _growth(simulated: Mapping[str, Found]) -> dict[str, Any]:
    rows = [
        {"costs": name, "workers": row["workers"], "candidates": row["candidates_an_hour"]}
        for name, found in simulated.items()
        for row in found["growth"]
    ]
    return _lines(rows, x="workers", title="workers", scale="log")


def _migration(simulated: Mapping[str, Found]) -> dict[str, Any]:
    rows = [
        {"costs": name, "every": row["every"], "candidates": row["candidates_an_hour"] / most}
        for name, found in simulated.items()
        for most in [max(row["candidates_an_hour"] for row in found["migration"])]
        for row in found["migration"]
        if 0 < row["every"] <= float(found["options"]["iterations"])  # others did not migrate
    ]
    title = "iterations between migrations"
    return _lines(rows, x="every", title=title, scale="linear", y="share of the best")


def _lines(
    rows: Sequence[Found], *, x: str, title: str, scale: str, y: str = "candidates an hour"
) -> dict[str, Any]:
    """Return a picture of one line for each kind of costs."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "width": 620,
        "height": 300,
        "data": {"values": list(rows)},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": x, "type": "quantitative", "title": title, "scale": {"type": "log"}},
            "y": {
                "field": "candidates",
                "type": "quantitative",
                "title": y,
                "scale": {"type": scale},
            },
            "color": {"field": "costs", "type": "nominal", "title": "costs"},
        },
    }


if __name__ == "__main__":
    run_as_command(main)

"""Question: what do places, widths and distances bring, as TurboEvolve's section 6 asks it?

Method: `engine.report`'s analyses ``ranks``, ``replay`` (what the first m children are worth) and
``distance`` over recorded runs, those of each problem together, as a page with plots, and their
numbers as JSON. Runs that are not over count as far as they went.

Usage: python -m bench.experiments.analyses name=NAME runs=FOLDER
       [results=bench/results/analyses] [to=docs]
runs=FOLDER  of runs, or those in it that match a pattern: runs='runs/experiments/k/runs/*-k8-*'
Writes results/NAME.json, to/analyses/NAME.md and to/images/analyses/NAME-*.svg.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import vl_convert

from bench.experiments.bands import bands, heatmap
from bench.options import read_options
from engine import config
from engine.core import UserError
from engine.durable import write_whole
from engine.report.analysis import RunRecord, read_runs
from engine.report.analysis.distance import distance
from engine.report.analysis.figures import Table
from engine.report.analysis.ranks import ranks
from engine.report.analysis.top_m import ALL, top_m
from engine.report.figures.figure import WIDTH, Figure
from engine.store import is_run

DEFAULTS = {"name": "", "runs": "", "results": "bench/results/analyses", "to": "docs"}
_SHOWN = 8  # widths with the most children, which is what a figure has room for


def analysed(runs: Sequence[RunRecord]) -> dict[str, Table]:
    """Return the analyses' tables of runs of one problem, by name."""
    found = ranks(runs)
    return {
        **{name: found[name] for name in ("profile", "parts", "novelty")},
        "top_m": top_m(runs),
        "distance": distance(runs)["by_shown"],
    }


def read_problems(pattern: str) -> dict[str, tuple[RunRecord, ...]]:
    """Return the runs in a folder, or whose folders match a pattern, by their problem's name.

    Raises:
        UserError: none does, or one is damaged.
    """
    path = Path(pattern)
    matching = path.iterdir() if path.is_dir() else path.parent.glob(path.name)
    folders = sorted(each for each in matching if is_run(each))
    if not folders:
        raise UserError(f"runs={pattern!r} matches no run's folder")
    by_problem: dict[str, list[Path]] = {}
    for folder in folders:
        name = Path(config.load_run(folder).problem).name
        by_problem.setdefault(name, []).append(folder)
    return {name: read_runs(own) for name, own in sorted(by_problem.items())}


def figures(problem: str, tables: Mapping[str, Table]) -> Iterator[Figure]:
    """Yield the figures of a problem's tables; none of what has no rows."""
    profile, replayed = tables["profile"].rows, tables["top_m"].rows
    children: dict[int, int] = {}
    for row in profile:
        children[row["K"]] = children.get(row["K"], 0) + row["children"]
    most = sorted(sorted(children, key=lambda k: -children[k])[:_SHOWN])
    shown = [{**row, "series": f"K = {row['K']}"} for row in profile if row["K"] in most]
    for key, title in (
        ("improving", "Children better than their parent"),
        ("valid", "Children with a score"),
        ("distance", "Distance from the parent, of valid children"),
    ):
        if shown:
            yield bands(
                shown, x="place", y=key, name=f"{problem}-{key}", title=f"{title}, by place"
            )
    calls = {row["K"]: row["calls"] for row in replayed if row["tier"] == ALL and row["K"] > 1}
    if calls:
        k = max(calls, key=lambda each: (calls[each], each))
        tiers = [
            {**row, "series": f"tier {row['tier']}" if row["tier"] else "all"}
            for row in replayed
            if row["K"] == k
        ]
        for key, title in (
            ("improving", "Calls with an improvement among the first m"),
            ("gain", "Gain of the best of the first m, where the first has a score"),
        ):
            name = f"{problem}-top-m-{key}"
            if any(row[key] is not None for row in tiers):  # no first child may have a score
                yield bands(tiers, x="m", y=key, name=name, title=f"{title}, K = {k}, by tier")
    if tables["distance"].rows:
        yield heatmap(tables["distance"].rows, name=f"{problem}-shown")


def page(name: str, problems: Mapping[str, Sequence[RunRecord]], found: Mapping[str, Any]) -> str:
    """Return the page.

    Args:
        name: of the page.
        problems: the runs of each problem.
        found: their tables and figures.
    """
    parts = [
        f"# What places, widths and distances bring: {name}\n",
        "<!-- Written by `python -m bench.experiments.analyses`. -->\n",
        "The analyses of TurboEvolve's section 6 on this project's runs. K is chosen as a run "
        "goes, so different K do not compare; figures are taken within each run first, lines are "
        "medians over the runs, bands the quartiles. It describes, and proves no cause.\n",
    ]
    for problem, runs in problems.items():
        tables, pictures = found[problem]
        children = sum(len(run.trials) for run in runs)
        parts.append(f"## {problem}\n\n{len(runs)} runs, {children:,} children.\n")
        for key in ("parts", "novelty"):
            parts.append(_table(tables[key]))
        for figure in pictures:
            path = f"../images/analyses/{name}-{figure.name}.svg"
            parts.append(f"### {figure.title}\n\n![{figure.alt}]({path})\n\n{figure.note}\n")
    return "\n".join(parts)


def _table(table: Table) -> str:
    """Return a table, a median with its quartiles in one cell."""
    if not table.rows:
        return f"{table.title}: nothing to show.\n"
    keys = [each for each in table.rows[0] if not each.endswith(("_q1", "_q3"))]
    lines = [f"**{table.title}**\n", f"| {' | '.join(keys)} |", "|" + "---|" * len(keys)]
    for row in table.rows:
        lines.append(f"| {' | '.join(_cell(row, key) for key in keys)} |")
    return "\n".join([*lines, "", f"{table.note}\n"])


def _cell(row: Mapping[str, Any], key: str) -> str:
    value = row[key]
    if value is None:
        return "-"
    if f"{key}_q1" in row:
        return f"{value:.3g} ({row[f'{key}_q1']:.3g} to {row[f'{key}_q3']:.3g})"
    return f"{value:,}" if isinstance(value, int) else str(value)


def main(arguments: list[str]) -> None:
    """Analyse, and write."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    name, to, results = options["name"], Path(options["to"]), Path(options["results"])
    if not (name.replace("-", "").replace("_", "").isalnum() and options["runs"]):
        raise UserError("give name=NAME, of letters, digits and dashes, and runs=PATTERN")
    problems = read_problems(options["runs"])
    tables = {problem: analysed(runs) for problem, runs in problems.items()}
    found = {problem: (own, [*figures(problem, own)]) for problem, own in tables.items()}
    for folder in (results, to / "analyses", to / "images" / "analyses"):
        folder.mkdir(parents=True, exist_ok=True)
    numbers = {
        problem: {key: list(table.rows) for key, table in own.items()}
        for problem, own in tables.items()
    }
    text = json.dumps({"name": name, "problems": numbers}, allow_nan=False)
    write_whole(results / f"{name}.json", text + "\n")
    for _, pictures in found.values():
        for figure in pictures:
            spec = figure.whole(width=WIDTH) | {"background": "white"}
            path = to / "images" / "analyses" / f"{name}-{figure.name}.svg"
            write_whole(path, vl_convert.vegalite_to_svg(spec))
    write_whole(to / "analyses" / f"{name}.md", page(name, problems, found))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)

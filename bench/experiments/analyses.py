"""Question: what do places, widths and distances bring, as TurboEvolve's section 6 asks it?

Method: `engine.report`'s analyses ``ranks``, ``replay`` (what the first m children are worth) and
``distance`` over recorded runs, those of each problem together, as a page with plots, and their
numbers as JSON. Runs that are not over count as far as they went. Rows are medians over the runs,
each of which weighs the same, so a run counts for a K only with `LEAST_CALLS` calls of that K.

Usage: python -m bench.experiments.analyses name=NAME [runs=FOLDER]
       [results=bench/results/analyses] [to=docs]
runs=FOLDER  of runs, or those in it that match a pattern: runs='runs/experiments/k/runs/*-k8-*';
             without, the page is made anew of results/NAME.json
Writes results/NAME.json, to/analyses/NAME.md and to/images/analyses/NAME-*.svg.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import vl_convert

from bench.experiments.bands import bands, heatmap
from bench.options import read_options, run_as_command
from engine import config
from engine.core import UserError
from engine.documents import read_json
from engine.durable import write_whole
from engine.report.analysis import RunRecord, read_runs
from engine.report.analysis.distance import distance
from engine.report.analysis.figures import Table
from engine.report.analysis.ranks import ranks
from engine.report.analysis.top_m import ALL, top_m
from engine.report.figures.figure import WIDTH, Figure
from engine.store import is_run

DEFAULTS = {"name": "", "runs": "", "results": "bench/results/analyses", "to": "docs"}
LEAST_CALLS = 30
"""With which a run counts for a K; of fewer calls each moves a share by more than 3 %."""
_SHOWN = 8  # widths with the most children, which is what a figure has room for

Numbers = Mapping[str, Any]
"""What results/NAME.json holds, see `measured`."""


def analysed(runs: Sequence[RunRecord]) -> dict[str, Table]:
    """Return the analyses' tables of runs of one problem, by name."""
    found = ranks(runs)
    return {
        **{name: found[name] for name in ("profile", "parts", "novelty")},
        "top_m": top_m(runs),
        "distance": distance(runs)["by_shown"],
    }


def counted(run: RunRecord, *, least: int = LEAST_CALLS) -> RunRecord:
    """Return a run with the judged children of each K that it has enough calls of.

    Args:
        run: any.
        least: how many calls are enough.
    """
    calls = Counter(k for _, k in {(each.call.iteration, each.call.k) for each in run.judged})
    return replace(run, trials=[each for each in run.judged if calls[each.call.k] >= least])


def measured(name: str, problems: Mapping[str, Sequence[RunRecord]]) -> Numbers:
    """Return the numbers of a page.

    ``least_calls`` is the rule by which runs count for a K; ``runs``, ``fixed_k`` and ``children``
    of a problem are all runs, those of them with a fixed K, and all judged children.

    Args:
        name: of the page.
        problems: the runs of each problem.
    """
    return {
        "name": name,
        "least_calls": LEAST_CALLS,
        "made_of": {
            problem: {
                "runs": len(runs),
                "fixed_k": sum(run.settings.width.policy == "fixed" for run in runs),
                "children": sum(len(run.judged) for run in runs),
            }
            for problem, runs in problems.items()
        },
        "problems": {
            problem: {
                key: list(table.rows) for key, table in analysed([*map(counted, runs)]).items()
            }
            for problem, runs in problems.items()
        },
    }


def tables_of(rows: Mapping[str, Any]) -> dict[str, Table]:
    """Return the tables of a problem from their rows, with today's titles and notes."""
    return {key: replace(empty, rows=rows[key]) for key, empty in analysed(()).items()}


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


def read_numbers(file: Path) -> Numbers:
    """Return the numbers of a page that was made.

    Raises:
        UserError: they are not there, or no JSON.
    """
    try:
        found: Numbers = read_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file} can't be read ({error}); give runs=FOLDER") from error
    return found


def drawn(found: Numbers) -> dict[str, list[Figure]]:
    """Return the figures of each problem."""
    return {
        problem: [*figures(problem, tables_of(rows))] for problem, rows in found["problems"].items()
    }


def figures(problem: str, tables: Mapping[str, Table]) -> Iterator[Figure]:
    """Yield the figures of a problem's tables; none of what has no rows."""
    profile = tables["profile"].rows
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
    yield from _first_children(problem, tables["top_m"])
    if tables["distance"].rows:
        yield heatmap(tables["distance"].rows, name=f"{problem}-shown")


def _first_children(problem: str, replayed: Table) -> Iterator[Figure]:
    """Yield what the first m children are worth, for the K that most children were made with."""
    whole = [row for row in replayed.rows if row["tier"] == ALL and row["K"] > 1]
    if not whole:
        return
    k = max(whole, key=lambda row: (row["calls"] * row["K"], row["K"]))["K"]
    tiers = [
        {**row, "series": f"tier {row['tier']}" if row["tier"] else "all"}
        for row in replayed.rows
        if row["K"] == k
    ]
    for key, title in (
        ("improving", "Calls with an improvement among the first m"),
        ("gain", "Gain of the best of the first m, where the first has a score"),
    ):
        name = f"{problem}-top-m-{key}"
        if any(row[key] is not None for row in tiers):  # no first child may have a score
            yield bands(tiers, x="m", y=key, name=name, title=f"{title}, K = {k}, by tier")


def page(found: Numbers, pictures: Mapping[str, Sequence[Figure]]) -> str:
    """Return the page.

    Args:
        found: its numbers.
        pictures: the figures of each problem.
    """
    name = found["name"]
    parts = [
        f"# What places, widths and distances bring: {name}\n",
        "<!-- Written by `python -m bench.experiments.analyses`; a test compares. -->\n",
        *_introduction(found),
    ]
    for problem, rows in found["problems"].items():
        of, tables = found["made_of"][problem], tables_of(rows)
        parts.append(
            f"## {problem}\n\n{of['runs']} runs, {of['fixed_k']} of them with a fixed K; "
            f"{of['children']:,} children.\n"
        )
        for key in ("parts", "novelty"):
            parts.append(_table(tables[key]))
        for figure in pictures[problem]:
            path = f"../images/analyses/{name}-{figure.name}.svg"
            parts.append(f"### {figure.title}\n\n![{figure.alt}]({path})\n")
            if figure.note:
                parts.append(f"{figure.note}\n")
    return "\n".join(parts)


def _introduction(found: Numbers) -> Iterator[str]:
    """Yield what has to be known to read a page."""
    yield (
        "The analyses of TurboEvolve's section 6 on this project's runs. Figures are taken within "
        f"each run first, lines are medians over the runs, bands the quartiles. A run counts for a "
        f"K with {found['least_calls']} calls of it or more, and then weighs as much as any other. "
        "It describes, and proves no cause. "
        "Different K do not compare: a run that chooses K as it goes has a large one where it "
        "stalls, and runs with a fixed K soon have different parents. [Experiments]"
        "(../experiments.md#k) compares what runs of each K reach in the same time.\n"
    )
    yield (
        "A *place* is a child's place in its call, in the order of the temperatures. Only where "
        "one answer lists several programs (`verbalized`) is it TurboEvolve's rank, the place in "
        "that list. A *tier* is a fifth of the calls of one K, 5 the best, by the best score among "
        "the other programs that the prompt shows, or by the parent's where it shows none.\n"
    )
    if not any(rows["distance"] for rows in found["problems"].values()):
        yield (
            "No call of these runs shows another program with a score, as with "
            "`prompts.history_tokens=0`, which is the embedded model's. So all tiers are by the "
            "parent's score, and nothing can be said of the parent's distance from what is shown "
            "beside it (the source's section 6.3).\n"
        )


def _table(table: Table) -> str:
    """Return a table, a median with its quartiles in one cell."""
    if not table.rows:
        return f"{table.title}: {table.empty}.\n"
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
    """Analyse, if there are runs, and write."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    name, to, results = options["name"], Path(options["to"]), Path(options["results"])
    if not name.replace("-", "").replace("_", "").isalnum():
        raise UserError("give name=NAME, of letters, digits and dashes")
    file = results / f"{name}.json"
    if options["runs"]:
        text = json.dumps(measured(name, read_problems(options["runs"])), allow_nan=False)
        results.mkdir(parents=True, exist_ok=True)
        write_whole(file, text + "\n")
    found = read_numbers(file)
    pictures = drawn(found)
    for folder in (to / "analyses", to / "images" / "analyses"):
        folder.mkdir(parents=True, exist_ok=True)
    for figure in (each for own in pictures.values() for each in own):
        spec = figure.whole(width=WIDTH) | {"background": "white"}
        path = to / "images" / "analyses" / f"{name}-{figure.name}.svg"
        write_whole(path, vl_convert.vegalite_to_svg(spec))
    write_whole(to / "analyses" / f"{name}.md", page(found, pictures))


if __name__ == "__main__":
    run_as_command(main)

"""A report's page: what stands in it, put into the template."""

import base64
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from engine.report.analysis import RunRecord
from engine.report.analysis.figures import Share, Table
from engine.report.clock import clock_use
from engine.report.figures import Aims, Figure, figures_across, figures_of, path_of
from engine.report.figures.thinning import thinned
from engine.report.page.assets import asset, plain, templates, vega
from engine.report.page.diff import Step, steps_of
from engine.report.page.pack import Packed, packed
from engine.report.tables import Group, differences, grouped_runs, overview, rules
from engine.report.tables.ideas import ideas_of
from engine.report.tables.programs import Row, of_run
from engine.timeline import TIMELINE

DETAILED = 12
"""Runs that have a section of their own; of more, the others are compared only."""
_ROOM = 2_500_000  # characters of the page that programs may take
_DIFF_LINES = 4000  # of the page
_ROWS = 40  # of a table on the page


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shown:
    """A figure on the page: its id there, itself, and as much of its table as is shown."""

    id: str
    figure: Figure
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Section:
    """A run on the page."""

    number: int
    name: str
    facts: Row
    figures: Sequence[_Shown]
    steps: Sequence[Step]
    length: int  # of the path to the best program, in programs
    programs: Packed
    ideas: Sequence[Row]
    rules: Table
    clock: Sequence[Row]


def report_page(runs: Sequence[RunRecord], *, aims: Aims) -> str:
    """Return a page that shows runs of one problem.

    Args:
        runs: at least one, with names that people are to see.
        aims: scores worth reaching.

    Raises:
        UserError: a timeline can't be read.
    """
    groups = grouped_runs(runs)
    series = {run.name: group.label or "all runs" for group in groups for run in group.runs}
    across = _on_page("all", figures_across(runs, aims=aims, series=series))
    detailed = runs[:DETAILED]
    sections = [_section(n, run, aims, len(detailed)) for n, run in enumerate(detailed)]
    everything = [*across, *(each for section in sections for each in section.figures)]
    scripts = [vega(), asset("drawing.js") + asset("page.js")]
    page: str = (
        templates()
        .get_template("report.html")
        .render(
            problem=overview(runs).rows[0]["problem"],
            overview=overview(runs),
            groups=groups if len(runs) > 1 else (),
            group_rows=[_group_row(group) for group in groups],
            differences=differences(runs) if len(runs) > 1 else None,
            across=across,
            sections=sections,
            left_out=len(runs) - len(detailed),
            data=_json(
                {
                    each.id: {"spec": each.figure.spec, "data": each.figure.data}
                    for each in everything
                }
            ),
            style=Markup(asset("style.css")),
            scripts=[Markup(script) for script in scripts],
            policy=_policy(scripts),
        )
    )
    return page


def _section(number: int, run: RunRecord, aims: Aims, among: int) -> _Section:
    programs = of_run(run)
    path = path_of(run)
    by_id = {row["id"]: row for row in programs}
    figures = _on_page(f"run{number}", figures_of(run, aims=aims, programs=programs))
    return _Section(
        number=number,
        name=run.name,
        facts={key: value for key, value in overview([run]).rows[0].items() if key != "run"},
        figures=figures,
        steps=steps_of([by_id[each] for each in path], room=_DIFF_LINES // among),
        length=len(path),
        programs=packed(
            programs,
            direction=run.history.direction,
            first=_clickable(figures, path),
            room=_ROOM // among,
        ),
        ideas=ideas_of(run),
        rules=_without_run(rules([run])),
        clock=_clock(run),
    )


def _without_run(table: Table) -> Table:
    rows = [{key: row[key] for key in row if key != "run"} for row in table.rows]
    return Table(title=table.title, rows=rows, note=table.note)


def _clickable(figures: Sequence[_Shown], path: Sequence[str]) -> Collection[str]:
    """Return the ids of the programs that a click can ask for, and of the best path."""
    rows = (row for each in figures for rows in each.figure.data.values() for row in rows)
    return {row["id"] for row in rows if "id" in row} | {*path}


def _on_page(prefix: str, figures: Sequence[Figure]) -> list[_Shown]:
    return [
        _Shown(id=f"{prefix}-{each.name}", figure=each, rows=thinned(each.table.rows, _ROWS))
        for each in figures
    ]


def _group_row(group: Group) -> Row:
    return {
        "group": group.label or "all runs",
        "runs": len(group.runs),
        "seeds": ", ".join(str(run.settings.seed) for run in group.runs),
    }


def _clock(run: RunRecord) -> list[Row]:
    """Return who used the run's time; nothing where it was not recorded."""
    used = None if run.folder is None else clock_use(run.folder / TIMELINE)
    if used is None:
        return []
    words = {
        "both": "model and evaluators at once",
        "model_only": "the model alone",
        "evaluators_only": "evaluators alone",
        "neither": "neither, or programs made for idle evaluators alone",
    }
    waits = {
        "awaiting_evaluations": "the model waited for verdicts",
        "awaiting_parent": "the model waited for a parent and its prompt",
        "awaiting_implementer": "the model waited for an endpoint",
    }
    shares = [(text, used[key]) for key, text in words.items()]
    shares += [(text, used["model"][key]) for key, text in waits.items()]
    return [{"what": text, "share": Share(share)} for text, share in shares]


def _json(value: Any) -> Markup:
    """Return a value as JSON that can stand in a script element."""
    text = json.dumps(plain(value), allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _policy(scripts: Sequence[str]) -> str:
    """Return a policy under which only these scripts run, and nothing is loaded from anywhere."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )

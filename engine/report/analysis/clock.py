"""``analysis=clock``: who used the wall-clock time of each run, in shares of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from engine.report.analysis.runs import RunRecord
from engine.report.analysis.statistics import mean
from engine.report.analysis.table import Findings, Table, percent, share
from engine.report.clock import clock_use
from engine.timeline import TIMELINE


def clock(runs: Sequence[RunRecord]) -> Findings:
    """Read the timelines of the runs; those without recorded time are left out.

    Raises:
        UserError: a timeline can't be read.
    """
    used = {run.name: clock_use(Path(run.name) / TIMELINE) for run in runs}
    figures = {name: dataclasses.asdict(use) for name, use in used.items() if use is not None}
    table = Table(
        title="Who used the wall-clock time",
        columns=(
            *("run", "seconds", ("model", lambda row: percent(row["model"]["busy"]))),
            ("evaluators", lambda row: percent(mean([e["busy"] for e in row["evaluators"]]))),
            ("awaits verdicts", lambda row: percent(row["model"]["awaiting_evaluations"])),
            ("awaits a parent", lambda row: percent(row["model"]["awaiting_parent"])),
            *(
                (key.replace("_", " "), share(key))
                for key in ("both", "model_only", "evaluators_only", "neither")
            ),
        ),
        rows=[{"run": name, **each} for name, each in figures.items()],
        note="model, evaluators: busy, the mean of the evaluators; awaits: what the model waited "
        "for; both to neither: whether the model and at least one evaluator were busy at once.",
    )
    return Findings(figures={"clock": figures}, tables=(table,))

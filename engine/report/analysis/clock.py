"""``analysis=clock``: who used the wall-clock time of each run, in shares of it."""

from collections.abc import Sequence
from pathlib import Path

from engine.report.analysis.figures import Share, Table, mean
from engine.report.analysis.runs import RunRecord
from engine.report.clock import clock_use
from engine.timeline import TIMELINE


def clock(runs: Sequence[RunRecord]) -> dict[str, Table]:
    """Read the timelines of the runs; those without recorded time are left out.

    Raises:
        UserError: a timeline can't be read.
    """
    used = [(run.name, clock_use(Path(run.name) / TIMELINE)) for run in runs]
    rows = [
        {
            "run": name,
            "seconds": use.seconds,
            "model": Share(use.model.busy),
            "evaluators": Share(mean([each.busy for each in use.evaluators]) or 0.0),
            "awaits_verdicts": Share(use.model.awaiting_evaluations),
            "awaits_a_parent": Share(use.model.awaiting_parent),
            "both": Share(use.both),
            "model_only": Share(use.model_only),
            "evaluators_only": Share(use.evaluators_only),
            "neither": Share(use.neither),
        }
        for name, use in used
        if use is not None
    ]
    note = (
        "model, evaluators: busy, the mean of the evaluators; awaits: what the model waited for; "
        "both to neither: whether the model and at least one evaluator were busy at once."
    )
    return {"clock": Table(title="Who used the wall-clock time", rows=rows, note=note)}

"""How busy the model and the evaluators were, over equal spans of a run's timeline."""

from collections.abc import Sequence

from engine.report.analysis import RunRecord
from engine.report.analysis.figures import Table
from engine.report.clock import busy_over_time
from engine.report.tables.programs import Row
from engine.timeline import TIMELINE

_SPANS = 120


def busy(runs: Sequence[RunRecord]) -> Table:
    """Return a row for each span of each run that has a timeline."""
    return Table(
        title="Share of the time in which the model and the evaluators were busy",
        rows=[row for run in runs for row in busy_of(run)],
        note="evaluators: mean over all of them.",
    )


def busy_of(run: RunRecord) -> list[Row]:
    """Return the rows of one run.

    Raises:
        UserError: its timeline can't be read.
    """
    if run.folder is None:
        return []
    rows = busy_over_time(run.folder / TIMELINE, bins=_SPANS)
    return [{"run": run.name, **row} for row in rows]

"""The cells of runs' MAP-Elites archives, and their best programs, over all islands of a run."""

from collections.abc import Sequence

from engine.core import Cell
from engine.report.analysis import RunRecord
from engine.report.analysis.figures import Table
from engine.report.tables.programs import Row


def archive(runs: Sequence[RunRecord]) -> Table:
    """Return a row for each filled cell of each run that has an archive."""
    return Table(
        title="Cells of the archive",
        rows=[row for run in runs for row in archive_of(run)],
        note="Over all islands of a run; programs: with a score, that fell into the cell.",
    )


def archive_of(run: RunRecord) -> list[Row]:
    """Return the rows of one run: for each feature its bin and where that begins and ends."""
    if run.features is None:
        return []
    elites: dict[Cell, tuple[str, float]] = {}
    counts: dict[Cell, int] = {}
    for name, verdict in run.history.verdicts.items():
        cell, score = verdict.cell, verdict.score
        if cell is None or score is None or len(cell) != len(run.features):
            continue
        counts[cell] = counts.get(cell, 0) + 1
        if cell not in elites or run.history.direction.better(score, elites[cell][1]):
            elites[cell] = name, score
    return [
        {
            "run": run.name,
            "id": name,
            "score": score,
            "programs": counts[cell],
            **_place(run, cell),
        }
        for cell, (name, score) in sorted(elites.items())
    ]


def _place(run: RunRecord, cell: Cell) -> Row:
    place: Row = {}
    for number, (feature, bin_) in enumerate(zip(run.features or (), cell, strict=True), 1):
        width = (feature.high - feature.low) / feature.bins
        place |= {
            f"feature_{number}": feature.name,
            f"bin_{number}": bin_,
            f"low_{number}": feature.low + bin_ * width,
            f"high_{number}": feature.low + (bin_ + 1) * width,
        }
    return place

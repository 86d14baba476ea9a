"""A run's totals, a row for each."""

from collections.abc import Sequence
from pathlib import Path

from engine.core import INITIAL
from engine.report.analysis import RunRecord
from engine.report.analysis.figures import Share, Table
from engine.report.tables.programs import Row


def overview(runs: Sequence[RunRecord]) -> Table:
    """Return what each run has used, and reached."""
    return Table(
        title="Runs",
        rows=[_row(run) for run in runs],
        note="valid: share of the evaluated candidates that have a score, those that a cheap stage "
        "screened left out; hit rate: of prompt tokens.",
    )


def _row(run: RunRecord) -> Row:
    history, settings = run.history, run.settings
    best = history.best
    return {
        "run": run.name,
        "problem": Path(settings.problem).name,
        "model": settings.model.name,
        "seed": settings.seed,
        "initial_score": history.verdicts[INITIAL].score,
        "best_score": None if best is None else best.score,
        "best_program": None if best is None else best.candidate,
        "candidates": history.evaluated,
        "children": len(history.children),
        "valid": Share(history.valid / history.judged) if history.judged else None,
        "calls": len(history.calls),
        "seconds": history.wall_seconds,
        "generated_tokens": history.generated_tokens,
        "prompt_tokens": history.prompt_tokens,
        "hit_rate": Share(history.hit_rate) if history.prompt_tokens else None,
        "money": run.end["money"],
        "sessions": len(history.sessions),
        "updates": len(history.updates),
        "waiting": len(history.pending),
    }

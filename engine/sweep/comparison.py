"""How far a sweep is, and its runs side by side."""

import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from engine.durable import write_whole
from engine.report.analysis.figures import Table
from engine.sweep.plan import Planned, Sweep

_SEED = "seed"


def place(sweep: Sweep, planned: Planned) -> str:
    """Return which run of the sweep one is, and what the others will take."""
    others = [each for each in sweep.runs if each is not planned]
    took = [found["wall_seconds"] for each in others if (found := each.summary())]
    left = len(others) - len(took)
    text = f"run {sweep.runs.index(planned) + 1} of {len(sweep.runs)}: {planned.name}"
    if not left:
        return f"{text}, the last one"
    limit = planned.settings.budget.seconds
    if took:
        return f"{text}, about {_clock(left * statistics.mean(took))} for the {left} after it"
    if limit is not None:
        return f"{text}, up to {_clock(left * limit)} for the {left} after it"
    return f"{text}, {left} after it"


def compare(sweep: Sweep) -> str:
    """Return a table of the runs that reached their budget; it is ``comparison.json`` too.

    Runs that differ in their seed alone share a row.

    Raises:
        UserError: the file can't be written.
    """
    rows: dict[tuple[tuple[str, str], ...], list[Planned]] = {}
    for each in sweep.runs:
        key = tuple((name, value) for name, value in each.varied.items() if name != _SEED)
        rows.setdefault(key, []).append(each)
    found = [row for key, runs in rows.items() if (row := _row(dict(key), runs))]
    if found:
        text = json.dumps(found, indent=2, allow_nan=False) + "\n"
        write_whole(sweep.folder / "comparison.json", text)
    note = f"Medians over the runs of a row. The runs are in {sweep.folder}"
    return "\n" + Table(title="Sweep", rows=found, note=note).text()


def _row(values: Mapping[str, str], runs: Sequence[Planned]) -> dict[str, Any] | None:
    found = [summary for each in runs if (summary := each.summary())]
    if not found:
        return None
    scores = [each["best_score"] for each in found]
    return {
        **values,
        "runs": f"{len(found)}/{len(runs)}",
        "best_score": statistics.median(scores),
        "lowest": min(scores),
        "highest": max(scores),
        "candidates": statistics.median(each["candidates"] for each in found),
        "valid": statistics.median(each["valid"] for each in found),
        "seconds": statistics.median(each["wall_seconds"] for each in found),
    }


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

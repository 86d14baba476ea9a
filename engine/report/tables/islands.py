"""The islands of a run: the best program that each made, and the programs that came from others."""

from collections.abc import Sequence

from engine.report.analysis import RunRecord
from engine.report.analysis.figures import Table
from engine.report.tables.programs import Row


def islands(runs: Sequence[RunRecord]) -> Table:
    """Return a row for each new best of an island among the programs that it made itself."""
    return Table(
        title="Best program of each island",
        rows=[row for run in runs for row in islands_of(run)],
        note="Of the programs that the island or its idle evaluators made; migrants count where "
        "they come from.",
    )


def islands_of(run: RunRecord) -> list[Row]:
    """Return the rows of one run, in the order of the verdicts."""
    history, bests, rows = run.history, dict[int, float](), []
    for name, verdict in history.verdicts.items():
        score = verdict.score
        if score is None or history.parent_of(name) is None:
            continue
        island = history.island_of(name)
        if island not in bests or history.direction.better(score, bests[island]):
            bests[island] = score
            rows.append(
                {
                    "run": run.name,
                    "island": island,
                    "candidates": run.totals[name]["candidates"],
                    "seconds": run.at[verdict.KIND, name],
                    "best": score,
                    "id": name,
                }
            )
    return rows


def arrivals(runs: Sequence[RunRecord]) -> Table:
    """Return a row for each program that an island first changed though another one had made it."""
    return Table(
        title="Programs of other islands, when first chosen as a parent",
        rows=[row for run in runs for row in arrivals_of(run)],
        note="A migration is no event of the log; this is the first one that shows it.",
    )


def arrivals_of(run: RunRecord) -> list[Row]:
    """Return the rows of one run, in the order of the calls."""
    history, seen, rows = run.history, set[tuple[int, str]](), []
    for call in history.calls.values():
        if history.parent_of(call.parent) is None or (call.island, call.parent) in seen:
            continue
        seen.add((call.island, call.parent))
        home = history.island_of(call.parent)
        if home != call.island:
            rows.append(
                {
                    "run": run.name,
                    "island": call.island,
                    "from_island": home,
                    "id": call.parent,
                    "score": history.verdicts[call.parent].score,
                    "candidates": run.totals[call.parent]["candidates"],
                    "iteration": call.iteration,
                    "seconds": run.at[call.KIND, call.subject],
                }
            )
    return rows

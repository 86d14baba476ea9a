"""An advisor's ideas, and what came of the programs that tested them."""

from collections.abc import Sequence

from engine.report.analysis import RunRecord
from engine.report.analysis.figures import Table
from engine.report.tables.programs import Row


def ideas(runs: Sequence[RunRecord]) -> Table:
    """Return a row for each idea that repeats no other one."""
    return Table(
        title="Ideas of the advisor",
        rows=[row for run in runs for row in ideas_of(run)],
        note="best gain: over the parent's score, of the idea's experiments.",
    )


def ideas_of(run: RunRecord) -> list[Row]:
    """Return the rows of one run, in the order in which the ideas were had."""
    rows = []
    for tried in run.history.ideas.as_of(run.history.events):
        outcomes = [each.outcome for each in tried.experiments if each.outcome is not None]
        rows.append(
            {
                "run": run.name,
                "idea": tried.idea.id,
                "hypothesis": tried.idea.hypothesis,
                "reasoning": tried.idea.reasoning,
                "novelty": tried.idea.novelty.value,
                "of": tried.idea.of,
                "experiments": len(tried.experiments),
                "scored": sum(each.score is not None for each in outcomes),
                "best_gain": tried.gain,
            }
        )
    return rows

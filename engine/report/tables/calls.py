"""The calls to the model, and what each brought."""

from collections.abc import Sequence

from engine.report.analysis import RunRecord
from engine.report.analysis.figures import Table, grouped
from engine.report.tables.programs import Row


def calls(runs: Sequence[RunRecord]) -> Table:
    """Return a row for each call."""
    return Table(
        title="Calls to the model",
        rows=[row for run in runs for row in _calls(run)],
        note="judged: children without those that nobody judged, since the budget was spent, the "
        "engine failed or they are not evaluated yet; improved: better than their parent.",
    )


def _calls(run: RunRecord) -> list[Row]:
    trials = grouped((trial.call.iteration, trial) for trial in run.trials)
    rows = []
    for call in run.history.calls.values():
        children = trials.get(call.iteration, [])
        rows.append(
            {
                "run": run.name,
                "iteration": call.iteration,
                "seconds": run.at[call.KIND, call.subject],
                "island": call.island,
                "operator": call.operator,
                "rule": call.rule,
                "parent": call.parent,
                "k": call.k,
                "adapter": call.adapter,
                "guessed": call.guessed,
                "prompt_tokens": call.prompt_tokens,
                "children": len(children),
                "judged": sum(each.is_judged for each in children),
                "scored": sum(each.score is not None for each in children),
                "improved": sum(each.is_better for each in children),
                "best_gain": max(
                    (each.gain for each in children if each.gain is not None), default=None
                ),
            }
        )
    return rows

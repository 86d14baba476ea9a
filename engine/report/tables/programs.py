"""Every program of a run: who made it, from what, when, at what cost, and what became of it.

A program that another island sent has its score from there and no parent here.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from engine.core import FIRST_ITERATION, Child, Evaluation, Fill, Migrant
from engine.report.analysis import RunRecord
from engine.report.analysis.figures import Table
from engine.report.analysis.runs import Trial, gain_of

Row = dict[str, Any]

SCORED, FAILED, REFUSED, WAITING = "scored", "failed", "refused", "waiting"
"""What can have become of a program: it has a score; its evaluation gave none; it was not evaluated
(a child without a program too); its verdict is not there."""

_MADE = (Child.KIND, Fill.KIND, Migrant.KIND)
"""The events of programs that a run did not begin with."""

_NOBODY: Mapping[str, Any] = {
    "iteration": FIRST_ITERATION,
    "index": 0,
    "island": None,
    "operator": "",
    "rule": "",
    "parent": "",
    "k": None,
    "adapter": None,
    "temperature": None,
    "generated_tokens": 0,
    "prompt_tokens": 0,
    "cached_prompt_tokens": 0,
    "model_seconds": 0.0,
    "gain": None,
}
"""What a program has that no call made."""


def programs(runs: Sequence[RunRecord]) -> Table:
    """Return a row for each program that a run began with, made itself, or was sent."""
    return Table(
        title="Programs",
        rows=[row for run in runs for row in of_run(run)],
        note="order: of generation, the initial program's is 0; candidates, tokens: evaluated and "
        "generated until its verdict.",
    )


def of_run(run: RunRecord) -> list[Row]:
    """Return the rows of one run, in the order of generation."""
    history = run.history
    first = [name for name in history.first if name in history.verdicts]
    made = [event for event in run.at if event[0] in _MADE]
    order = {event: number for number, event in enumerate(made, len(first))}
    rows = [_given(run, name, number) for number, name in enumerate(first)]
    rows += [_child(run, each, order[Child.KIND, each.child.subject]) for each in run.trials]
    rows += [_fill(run, each, order[Fill.KIND, each.subject]) for each in history.fills.values()]
    rows += [
        _given(run, each.id, order[Migrant.KIND, each.subject])
        for each in history.migrants.values()
        if each.id in history.verdicts
    ]
    return sorted(rows, key=lambda row: row["order"])


def _given(run: RunRecord, name: str, order: int) -> Row:
    """Return the row of a program that the run began with, or was sent."""
    verdict = run.history.verdicts[name]
    return {
        "run": run.name,
        "id": name,
        "order": order,
        "seconds": run.at[verdict.KIND, name],
        **_NOBODY,
        **_judged(run, name, verdict.evaluation),
        "program": run.history.program_of(name),
    }


def _child(run: RunRecord, trial: Trial, order: int) -> Row:
    child, call, verdict = trial.child, trial.call, trial.verdict
    row = {
        "run": run.name,
        "id": child.id,
        "order": order,
        "seconds": run.at[(child if verdict is None else verdict).KIND, child.id],
        "iteration": child.iteration,
        "index": child.index,
        "island": call.island,
        "operator": child.operator,
        "rule": call.rule,
        "parent": child.parent,
        "k": call.k,
        "adapter": call.adapter,
        "temperature": trial.temperature,
        "generated_tokens": child.generated_tokens,
        "prompt_tokens": child.prompt_tokens,
        "cached_prompt_tokens": child.cached_prompt_tokens,
        "model_seconds": child.llm_seconds,
        "gain": trial.gain,
        **_judged(run, child.id, None if verdict is None else verdict.evaluation),
        "program": None if child.program is None else child.program.text,
    }
    if child.refusal is not None:
        row.update(outcome=REFUSED, reason=child.refusal.value)
    return row


def _fill(run: RunRecord, fill: Fill, order: int) -> Row:
    verdict = run.history.verdicts.get(fill.id)
    last = (fill.KIND, fill.subject) if verdict is None else (verdict.KIND, fill.id)
    return {
        "run": run.name,
        "id": fill.id,
        "order": order,
        "seconds": run.at[last],
        **_NOBODY,
        "island": fill.island,
        "operator": fill.maker,
        "parent": fill.parent,
        "gain": gain_of(fill.id, run.history),
        **_judged(run, fill.id, None if verdict is None else verdict.evaluation),
        "program": fill.program.text,
    }


def _judged(run: RunRecord, name: str, evaluation: Evaluation | None) -> Row:
    """Return what a verdict says; of None, that there is none."""
    if evaluation is None:
        evaluation, outcome = Evaluation(score=None, failure=None), WAITING
    else:
        outcome = FAILED if evaluation.score is None else SCORED
    totals = run.totals.get(name, {})
    return {
        "outcome": outcome,
        "reason": "" if evaluation.failure is None else evaluation.failure.value,
        "score": evaluation.score,
        "new_best": name in run.bests,
        "candidates": totals.get("candidates"),
        "tokens": totals.get("tokens"),
        "message": evaluation.message,
        "metrics": json.dumps(
            {name: _number(each) for name, each in evaluation.metrics.items()}, allow_nan=False
        ),
        "evaluation_seconds": evaluation.seconds,
        "peak_bytes": evaluation.peak_bytes,
    }


def _number(value: float) -> float | str:
    """Return a metric as JSON has it: text if it is not finite."""
    return value if math.isfinite(value) else str(value)

"""``analysis=replay``: how the best programs came to be, and what the first m children were worth.

Covers two replays. *Lineage*: of each of the best programs, every step from the initial program on:
which call and operator made it, from which parent, and at what cost. *Within calls*: TurboEvolve's
top-m replay (section 6.1): what each call of K children would have brought with only its first m.
That compares widths on the same calls, so a policy's choice of K does not matter. The order of the
children is that of ``ranks.py``.

An answer that lists several programs is paid for once, by all of them. Each of its programs counts
the whole cost, since no part of the answer would have brought that program alone, and names the
child with which the answer is recorded (``answer_of``).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from engine.budget import cost
from engine.report.analysis.runs import RunRecord, Trial
from engine.report.analysis.statistics import grouped, median
from engine.report.analysis.table import Findings, Table, percent
from engine.store import Child

_TOKENS = ("generated_tokens", "prompt_tokens", "cached_prompt_tokens")
_COSTS = (*_TOKENS, "llm_seconds", "evaluation_seconds", "money")


def replay(runs: Sequence[RunRecord], *, top: int) -> Findings:
    """Replay the ``top`` best programs of all runs, the initial ones left out, and all calls."""
    scored = [
        (run.direction.key(trial.score), run, trial)
        for run in runs
        for trial in run.trials
        if trial.score is not None
    ]
    programs = [
        {"rank": rank, **_program(run, trial)}
        for rank, (_, run, trial) in enumerate(sorted(scored, key=lambda each: each[0])[:top], 1)
    ]
    within = _within_calls(runs)
    return Findings(
        figures={"programs": programs, "within_calls": within},
        tables=(_programs_table(programs), *map(_lineage_table, programs), _within_table(within)),
    )


def _program(run: RunRecord, trial: Trial) -> dict[str, Any]:
    """Return a program's score, its lineage and what that cost."""
    by_id = {each.child.id: each for each in run.trials}
    steps = [_step(run, each, _answer_of(each, by_id)) for each in _lineage(trial, by_id)]
    return {
        "run": run.name,
        "candidate": trial.child.id,
        "score": trial.score,
        "found_after": dataclasses.asdict(run.totals[trial.child.id]),
        "cost": {each: sum(step[each] for step in steps) for each in _COSTS},
        "lineage": steps,
    }


def _lineage(trial: Trial, by_id: Mapping[str, Trial]) -> list[Trial]:
    """Return the steps that led to a child, from the initial program on."""
    steps = [trial]
    while (parent := by_id.get(steps[-1].child.parent)) is not None:
        steps.append(parent)
    return steps[::-1]


def _answer_of(trial: Trial, by_id: Mapping[str, Trial]) -> Child:
    """Return the child with which the answer that holds a child's program is recorded."""
    child = trial.child
    if child.rank is None:
        return child
    before = (f"{child.iteration}.{index}" for index in range(child.index, -1, -1))
    siblings = (by_id[each].child for each in before if each in by_id)
    return next((each for each in siblings if each.generated_tokens), child)


def _step(run: RunRecord, trial: Trial, answer: Child) -> dict[str, Any]:
    child, call = trial.child, trial.call
    tokens = {each: getattr(answer, each) for each in _TOKENS}
    return {
        "candidate": child.id,
        "parent": child.parent,
        "operator": child.operator,
        "island": call.island,
        "k": call.k,
        "temperature": trial.temperature,
        "score": trial.score,
        "gain": trial.gain,
        "answer_of": answer.id,
        **tokens,
        "llm_seconds": answer.llm_seconds,
        "evaluation_seconds": run.history.verdicts[child.id].evaluation.seconds,
        "money": cost(run.settings.budget.prices, **tokens),
    }


def _within_calls(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Return, for each K and m up to it, what the first m children of the calls brought."""
    of_call = (
        grouped((trial.call.iteration, trial) for trial in run.trials).values() for run in runs
    )
    whole = (
        (len(trials), sorted(trials, key=lambda each: each.child.index))
        for trials in itertools.chain.from_iterable(of_call)
        if len(trials) == trials[0].call.k
    )
    return [
        {
            "k": k,
            "m": m,
            "calls": len(calls),
            "improving": sum(any(each.is_better for each in call[:m]) for call in calls),
            "valid": sum(bool(_gains(call[:m])) for call in calls),
            "median_best_gain": median(
                [max(gains) for call in calls if (gains := _gains(call[:m]))]
            ),
        }
        for k, calls in grouped(whole).items()
        for m in range(1, k + 1)
    ]


def _gains(trials: Sequence[Trial]) -> list[float]:
    return [each.gain for each in trials if each.gain is not None]


def _programs_table(programs: Sequence[dict[str, Any]]) -> Table:
    return Table(
        title="The best programs, and what they and their ancestors cost",
        columns=(
            *("rank", "run", "candidate", "score", ("steps", lambda row: len(row["lineage"]))),
            ("tokens", lambda row: row["cost"]["generated_tokens"]),
            ("model s", lambda row: row["cost"]["llm_seconds"]),
            ("evaluation s", lambda row: row["cost"]["evaluation_seconds"]),
            ("after candidates", lambda row: row["found_after"]["candidates"]),
            ("after s", lambda row: row["found_after"]["seconds"]),
        ),
        rows=programs,
    )


def _lineage_table(program: dict[str, Any]) -> Table:
    return Table(
        title=f"Lineage of {program['rank']}: {program['candidate']} of {program['run']}",
        columns=(
            *("candidate", "parent", "operator", "island", ("K", "k"), "temperature", "score"),
            *("gain", ("tokens", "generated_tokens"), ("model s", "llm_seconds")),
        ),
        rows=program["lineage"],
        note="tokens, model s: of the whole answer, which all programs that it lists share.",
    )


def _within_table(rows: Sequence[dict[str, Any]]) -> Table:
    return Table(
        title="What the first m children of a call are worth",
        columns=(
            *(("K", "k"), "m", "calls", "improving"),
            ("share", lambda row: percent(row["improving"] / row["calls"])),
            *("valid", "median_best_gain"),
        ),
        # All m are in the figures.
        rows=[row for row in rows if row["m"] == row["k"] or row["m"] & (row["m"] - 1) == 0],
        note="improving: at least one of the m is better than the parent; valid: at least one has "
        "a score; gain: of the best of those over the parent.",
    )

"""``analysis=replay``: how the best programs came to be, and what the first m children were worth.

Covers two replays. *Lineage*: of each of the best programs, every step from the initial program on:
which call and operator made it, from which parent, and at what cost. *Within calls*: what
each call would have brought with only its first children (``top_m``).

An answer that lists several programs is paid for once, by all of them. Each of its programs counts
the whole cost, since no part of the answer would have brought that program alone, and names the
child with which the answer is recorded (``answer_of``).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.budget import cost
from engine.report.analysis.figures import Table
from engine.report.analysis.runs import RunRecord, Trial
from engine.report.analysis.top_m import top_m
from engine.store import Child

_TOKENS = ("generated_tokens", "prompt_tokens", "cached_prompt_tokens")
_COSTS = (*_TOKENS, "model_s", "evaluation_s", "money")

Row = dict[str, Any]


def replay(runs: Sequence[RunRecord], *, top: int) -> dict[str, Table]:
    """Replay the ``top`` best programs of all runs, the initial ones left out, and all calls."""
    scored = [
        (run.history.direction.key(trial.score), run, trial)
        for run in runs
        for trial in run.trials
        if trial.score is not None
    ]
    scored.sort(key=lambda each: each[0])
    programs: list[Row] = []
    lineages: list[Row] = []
    for rank, (_, run, trial) in enumerate(scored[:top], 1):
        steps = _lineage(run, trial)
        programs.append({"rank": rank, **_program(run, trial, steps)})
        lineages += [{"rank": rank, **step} for step in steps]
    return {
        "programs": Table(
            title="The best programs, and what they and their ancestors cost", rows=programs
        ),
        "lineages": Table(
            title="Their lineages",
            rows=lineages,
            note="tokens, model s, money: of the whole answer, which all programs that it lists "
            "share.",
        ),
        "within_calls": top_m(runs),
    }


def _program(run: RunRecord, trial: Trial, steps: Sequence[Row]) -> Row:
    """Return a program's score, when it was found and what its lineage cost."""
    found = run.totals[trial.child.id]
    return {
        "run": run.name,
        "candidate": trial.child.id,
        "score": trial.score,
        "steps": len(steps),
        **{each: sum(step[each] for step in steps) for each in _COSTS},
        **{f"after_{name}": total for name, total in found.items()},
    }


def _lineage(run: RunRecord, trial: Trial) -> list[Row]:
    """Return the steps that led to a child, from the initial program on."""
    by_id = {each.child.id: each for each in run.trials}
    steps = [trial]
    while (parent := by_id.get(steps[-1].child.parent)) is not None:
        steps.append(parent)
    return [_step(run, each, _answer_of(each, by_id)) for each in reversed(steps)]


def _answer_of(trial: Trial, by_id: Mapping[str, Trial]) -> Child:
    """Return the child with which the answer that holds a child's program is recorded."""
    child = trial.child
    if child.rank is None:
        return child
    before = (f"{child.iteration}.{index}" for index in range(child.index, -1, -1))
    siblings = (by_id[each].child for each in before if each in by_id)
    return next((each for each in siblings if each.generated_tokens), child)


def _step(run: RunRecord, trial: Trial, answer: Child) -> Row:
    child, call = trial.child, trial.call
    tokens = {each: getattr(answer, each) for each in _TOKENS}
    return {
        "candidate": child.id,
        "parent": child.parent,
        "operator": child.operator,
        "island": call.island,
        "K": call.k,
        "temperature": trial.temperature,
        "score": trial.score,
        "gain": trial.gain,
        "answer_of": answer.id,
        **tokens,
        "model_s": answer.llm_seconds,
        "evaluation_s": run.history.verdicts[child.id].evaluation.seconds,
        "money": cost(run.settings.budget.prices, **tokens),
    }

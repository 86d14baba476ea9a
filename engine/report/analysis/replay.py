"""``analysis=replay``: how the best programs came to be, and what the first m children were worth.

Covers two replays. *Lineage*: of each of the best programs, every step from a program on that the
run did not make: which operator of the model, or which maker of fills, made it, from which parent,
and at what cost. A fill cost its evaluation. *Within calls*: what each call would have brought with
only its first children (``top_m``).

What the model was asked before a child, by an advisor or to rewrite the guidance, is of that
child's cost; tactics, which any later call may show, are of nobody's. An answer that lists several
programs is paid for once, by all of them. Each of its programs counts the whole cost, since no part
of the answer would have brought that program alone, and names the child with which the answer is
recorded (``answer_of``).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.budget import cost
from engine.report.analysis.figures import Table
from engine.report.analysis.runs import RunRecord, Trial, gain_of
from engine.report.analysis.top_m import top_m
from engine.store import Child, Fill

_TOKENS = ("generated_tokens", "prompt_tokens", "cached_prompt_tokens")
_COSTS = (*_TOKENS, "model_s", "evaluation_s", "money")

Row = dict[str, Any]


def replay(runs: Sequence[RunRecord], *, top: int) -> dict[str, Table]:
    """Replay the ``top`` best programs that all runs made, and all calls."""
    scored = [
        (run.history.direction.key(verdict.score), run, name)
        for run in runs
        for name, verdict in run.history.verdicts.items()
        if verdict.score is not None and run.history.parent_of(name) is not None
    ]
    scored.sort(key=lambda each: each[0])
    trials = {run.name: {each.child.id: each for each in run.trials} for run in runs}
    programs: list[Row] = []
    lineages: list[Row] = []
    for rank, (_, run, name) in enumerate(scored[:top], 1):
        steps = _lineage(run, name, trials[run.name])
        programs.append({"rank": rank, **_program(run, name, steps)})
        lineages += [{"rank": rank, **step} for step in steps]
    return {
        "programs": Table(
            title="The best programs, and what they and their ancestors cost", rows=programs
        ),
        "lineages": Table(
            title="Their lineages",
            rows=lineages,
            note="operator: of the model, or what made a fill; tokens, model s, money: of the "
            "whole answer, which all programs that it lists share, and of what an advisor or a "
            "rewriter of guidance was asked before it; without tactics.",
        ),
        "within_calls": top_m(runs),
    }


def _program(run: RunRecord, name: str, steps: Sequence[Row]) -> Row:
    """Return a program's score, when it was found and what its lineage cost."""
    return {
        "run": run.name,
        "candidate": name,
        "score": run.history.verdicts[name].score,
        "steps": len(steps),
        **{each: sum(step[each] for step in steps) for each in _COSTS},
        **{f"after_{limit}": total for limit, total in run.totals[name].items()},
    }


def _lineage(run: RunRecord, name: str, trials: Mapping[str, Trial]) -> list[Row]:
    """Return the steps that led to a program, each by a child or a fill."""
    history = run.history
    steps = []
    for each in history.lineage(name):
        if each in trials:
            steps.append(_step(run, trials[each], _answer_of(trials[each], trials)))
        elif each in history.fills:
            steps.append(_fill_step(run, history.fills[each]))
    return steps


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
    before = run.history.asked_before(answer.id)
    tokens = {
        "generated_tokens": answer.generated_tokens + sum(len(each.answer_ids) for each in before),
        **{
            name: sum(getattr(each, name) for each in (answer, *before))
            for name in ("prompt_tokens", "cached_prompt_tokens")
        },
    }
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
        "model_s": sum(each.llm_seconds for each in (answer, *before)),
        "evaluation_s": run.history.verdicts[child.id].evaluation.seconds,
        "money": cost(run.settings.budget.prices, **tokens),
    }


def _fill_step(run: RunRecord, fill: Fill) -> Row:
    """Return the step by a fill, which no call made."""
    verdict = run.history.verdicts[fill.id]
    return {
        "candidate": fill.id,
        "parent": fill.parent,
        "operator": fill.maker,
        "island": fill.island,
        "K": None,
        "temperature": None,
        "score": verdict.score,
        "gain": gain_of(fill.id, run.history),
        "answer_of": None,
        **dict.fromkeys(_TOKENS, 0),
        "model_s": 0.0,
        "evaluation_s": verdict.evaluation.seconds,
        "money": 0.0,
    }

"""Figures of whole searches, the same for the peers and for this engine; see ``bench.peers``.

Covers: the best score against seconds; candidates, completions and model seconds per hour and per
candidate; the ratios between sides, each with what it compares. Does not cover how they are
measured.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from bench.figures import spread
from bench.judge import Judged, refusals
from bench.serving import Counters
from engine.core import Problem, Refusal

Round = Mapping[str, Mapping[str, Any]]
"""The figures of each side, by its name."""

Steps = Sequence[tuple[float, float]]
"""The scores that were a search's best, in order, each with the second at which it was there."""

COMPARED = {
    "completions_per_hour": "finished answers of the model an hour",
    "judged_per_hour": "answers that came to a verdict, refusals included, an hour",
    "candidates_per_hour": "programs that an evaluator ran an hour",
    "new_per_hour": "programs that parse, are new and read no undefined name, an hour",
}
"""The figures of which the ratios are reported, in words."""

SHARES = (0.125, 0.25, 0.5, 1.0)
"""Of a search's seconds, after which its best score is reported."""


def peer_figures(
    judged: Sequence[Judged], counted: Counters, problem: Problem, *, seconds: float
) -> dict[str, Any]:
    """Return a peer's figures.

    Args:
        judged: what it had judged, the initial program first.
        counted: what the server counted meanwhile.
        problem: that was searched.
        seconds: after the first verdict at which the search ended; what came later does not count.
    """
    began = judged[0].at
    judged = [each for each in judged if each.at <= began + seconds]
    candidates = judged[1:]
    steps: list[tuple[float, float]] = []
    for each in judged:
        score = each.evaluation.score
        if score is not None and (not steps or problem.direction.better(score, steps[-1][1])):
            steps.append((each.at - began, score))
    refused = refusals(judged)
    return _figures(
        candidates=len(candidates),
        judged=len(candidates),
        new=len(candidates) - sum(refused.values()),
        valid=sum(each.evaluation.score is not None for each in candidates),
        completions=int(counted.completions),
        wall_seconds=seconds,
        seconds=seconds,
        llm_seconds=counted.seconds,
        hit_rate=counted.cached_tokens / max(1.0, counted.queried_tokens),
        steps=steps,
    ) | {
        "refusals": {reason.value: count for reason, count in sorted(refused.items())},
        "abandoned_calls": int(counted.abandoned),
        "refused_calls": int(counted.refused),
        "prompt_tokens": int(counted.prompt_tokens),
        "generated_tokens": int(counted.generated_tokens),
    }


def engine_figures(summary: Mapping[str, Any], *, steps: Steps, seconds: float) -> dict[str, Any]:
    """Return the figures of one of this engine's runs.

    Args:
        summary: its ``summary.json``.
        steps: see `Steps`.
        seconds: after which it asked for nothing more; what was under way may have come later.
    """
    refused = summary["refused"]
    unjudged = sum(refused.get(each, 0) for each in (Refusal.BUDGET, Refusal.FAILED))
    return _figures(
        candidates=summary["candidates"],
        judged=summary["candidates"] + sum(refused.values()) - unjudged,
        new=summary["candidates"],
        valid=summary["valid"],
        completions=summary["children"] - unjudged,  # most of those the end cut off
        wall_seconds=max(seconds, summary["wall_seconds"]),
        seconds=seconds,
        llm_seconds=summary["llm_seconds"],
        hit_rate=summary["hit_rate"],
        steps=[step for step in steps if step[0] <= seconds],
    ) | {
        "refusals": summary["refused"],
        "abandoned_calls": 0,
        "refused_calls": 0,
        "prompt_tokens": summary["prompt_tokens"],
        "generated_tokens": summary["generated_tokens"],
    }


def _figures(
    *,
    candidates: int,
    judged: int,
    new: int,
    valid: int,
    completions: int,
    wall_seconds: float,
    llm_seconds: float,
    hit_rate: float,
    steps: Steps,
    seconds: float,
) -> dict[str, Any]:
    hours = wall_seconds / 3600
    bests = [[score for at, score in steps if at <= share * seconds] for share in SHARES]
    return {
        "candidates": candidates,
        "judged": judged,
        "new": new,
        "valid": valid,
        "completions": completions,
        "best_score": steps[-1][1],
        "best_at": [scores[-1] if scores else steps[0][1] for scores in bests],
        "steps": [(round(at, 2), score) for at, score in steps],
        "completions_per_hour": round(completions / hours, 2),
        "candidates_per_hour": round(candidates / hours, 2),
        "new_per_hour": round(new / hours, 2),
        "valid_per_hour": round(valid / hours, 2),
        "judged_per_hour": round(judged / hours, 2),
        "valid_share": round(valid / max(1, candidates), 4),
        "hit_rate": round(hit_rate, 4),
        "wall_seconds": round(wall_seconds, 2),
        "llm_seconds": round(llm_seconds, 2),
        "llm_seconds_per_candidate": round(llm_seconds / max(1, candidates), 4),
    }


def summed_up(
    rounds: Sequence[Round], *, peers: Container[str], works: Mapping[str, str], least: int
) -> dict[str, Any]:
    """Return each side's figures over the rounds, and the ratios.

    Args:
        rounds: the figures of each side, by its name, for each round.
        peers: names of the sides that the others are compared with.
        works: what each side asks the model for, in words.
        least: candidates below which a search says little.
    """
    sides = {
        side: {
            figure: spread([each[side][figure] for each in rounds], digits=4)
            for figure, value in figures.items()
            if isinstance(value, int | float)
        }
        | {
            "best_at": [
                spread(list(bests), digits=6)
                for bests in zip(*(each[side]["best_at"] for each in rounds), strict=True)
            ],
            "refusals": _added(each[side]["refusals"] for each in rounds),
        }
        for side, figures in rounds[0].items()
    }
    others = [side for side in sides if side in peers]
    short = {
        side: counts
        for side in sides
        if min(counts := [each[side]["candidates"] for each in rounds]) < least
    }
    ratios = [
        ratio
        for side in sides
        if side not in peers and others
        for figure in COMPARED
        if (ratio := _ratio(rounds, side, others, figure, works)) is not None
    ]
    return {"sides": sides, "ratios": ratios, "short": short}


def _ratio(
    rounds: Sequence[Round],
    side: str,
    others: Sequence[str],
    figure: str,
    works: Mapping[str, str],
) -> dict[str, Any] | None:
    """Return the ratio to the better peer of each round; None where all peers of one had none."""
    better = [max(others, key=lambda name: float(each[name][figure])) for each in rounds]
    most = [float(each[name][figure]) for each, name in zip(rounds, better, strict=True)]
    if not all(most):
        return None
    own = [(each, side) for each in rounds]
    theirs = list(zip(rounds, better, strict=True))
    is_same = works[side] == works[others[0]]
    return {
        "side": side,
        "figure": figure,
        "says": (
            f"{COMPARED[figure]}: this engine's {works[side]} ({_tokens(own):.0f} tokens an "
            f"answer) over the better peer's {works[others[0]]} ({_tokens(theirs):.0f} tokens an "
            f"answer){'' if is_same else '; NOT the same work'}"
        ),
        **spread([each[side][figure] / most for each, most in zip(rounds, most, strict=True)]),
    }


def _tokens(searches: Sequence[tuple[Round, str]]) -> float:
    """Return the tokens of an answer, over searches, each given by its round and side."""
    figures = [each[side] for each, side in searches]
    answers = sum(each["completions"] for each in figures)
    return float(sum(each["generated_tokens"] for each in figures) / max(1, answers))


def table(result: Mapping[str, Any]) -> str:
    """Return what `summed_up` returns as text: a line for each side, and one for each ratio."""
    at = "  ".join(f"{f'best at {share:.1%}':>14}" for share in SHARES)
    lines = [f"{'side':14}{at}{'candidates':>12}{'an hour':>10}{'new an hour':>13}"]
    for side, each in result["sides"].items():
        bests = "  ".join(f"{best['median']:14.6f}" for best in each["best_at"])
        lines.append(
            f"{side:14}{bests}{each['candidates']['median']:12.0f}"
            f"{each['candidates_per_hour']['median']:10.0f}{each['new_per_hour']['median']:13.0f}"
        )
    lines += [
        f"{each['median']:.1f} times ({each['low']:.1f} to {each['high']:.1f}) the {each['says']}"
        for each in result["ratios"]
    ]
    lines += [f"too few candidates of {side}: {few}" for side, few in result["short"].items()]
    return "\n".join(lines)


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in counts:
        for reason, count in each.items():
            total[reason] = total.get(reason, 0) + count
    return total

"""Figures of whole searches, the same for the peers and for this engine; see ``bench.peers``.

Covers: candidates, completions and model seconds per hour and per candidate, and the ratios between
sides. Does not cover how they are measured.
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

COMPARED = ("candidates_per_hour", "new_per_hour", "judged_per_hour")
"""The figures of which the ratios are reported."""


def peer_figures(judged: Sequence[Judged], counted: Counters, problem: Problem) -> dict[str, Any]:
    """Return a peer's figures; the first of ``judged`` is the initial program."""
    candidates = judged[1:]
    scores = [each.evaluation.score for each in judged if each.evaluation.score is not None]
    best = scores[0]
    for score in scores:
        best = score if problem.direction.better(score, best) else best
    refused = refusals(judged)
    return _figures(
        candidates=len(candidates),
        judged=len(candidates),
        new=len(candidates) - sum(refused.values()),
        valid=sum(each.evaluation.score is not None for each in candidates),
        completions=int(counted.completions),
        wall_seconds=judged[-1].at - judged[0].at,
        llm_seconds=counted.seconds,
        hit_rate=counted.cached_tokens / max(1.0, counted.queried_tokens),
    ) | {
        "refusals": {reason.value: count for reason, count in sorted(refused.items())},
        "abandoned_calls": int(counted.abandoned),
        "refused_calls": int(counted.refused),
        "prompt_tokens": int(counted.prompt_tokens),
        "generated_tokens": int(counted.generated_tokens),
        "best_score": best,
    }


def engine_figures(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of one of this engine's runs from its ``summary.json``."""
    refused = summary["refused"]
    return _figures(
        candidates=summary["candidates"],
        judged=summary["candidates"] + sum(refused.values()) - refused.get(Refusal.BUDGET, 0),
        new=summary["candidates"],
        valid=summary["valid"],
        completions=summary["children"],
        wall_seconds=summary["wall_seconds"],
        llm_seconds=summary["llm_seconds"],
        hit_rate=summary["hit_rate"],
    ) | {
        "refusals": summary["refused"],
        "abandoned_calls": 0,
        "refused_calls": 0,
        "prompt_tokens": summary["prompt_tokens"],
        "generated_tokens": summary["generated_tokens"],
        "best_score": summary["best_score"],
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
) -> dict[str, Any]:
    hours = wall_seconds / 3600
    return {
        "candidates": candidates,
        "judged": judged,
        "new": new,
        "valid": valid,
        "completions": completions,
        "candidates_per_hour": round(candidates / hours, 2),
        "new_per_hour": round(new / hours, 2),
        "valid_per_hour": round(valid / hours, 2),
        "judged_per_hour": round(judged / hours, 2),
        "valid_share": round(valid / candidates, 4),
        "hit_rate": round(hit_rate, 4),
        "wall_seconds": round(wall_seconds, 2),
        "llm_seconds": round(llm_seconds, 2),
        "llm_seconds_per_candidate": round(llm_seconds / candidates, 4),
    }


def summed_up(rounds: Sequence[Round], *, peers: Container[str]) -> dict[str, Any]:
    """Return each side's figures over the rounds, and the ratios.

    Args:
        rounds: the figures of each side, by its name, for each round.
        peers: names of the sides that the others are compared with.
    """
    sides = {
        side: {
            figure: spread([each[side][figure] for each in rounds], digits=4)
            for figure, value in figures.items()
            if isinstance(value, int | float)
        }
        | {"refusals": _added(each[side]["refusals"] for each in rounds)}
        for side, figures in rounds[0].items()
    }
    others = [side for side in sides if side in peers]
    ratios = {
        side: {
            figure: ratio
            for figure in COMPARED
            if (ratio := _ratio(rounds, side, others, figure)) is not None
        }
        for side in sides
        if side not in peers and others
    }
    return {"sides": sides, "ratios": ratios}


def _ratio(
    rounds: Sequence[Round], side: str, others: Sequence[str], figure: str
) -> dict[str, float] | None:
    """Return the ratio to the better peer of each round; None where all peers of one had none."""
    better = [max(float(each[name][figure]) for name in others) for each in rounds]
    if not all(better):
        return None
    return spread([each[side][figure] / most for each, most in zip(rounds, better, strict=True)])


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in counts:
        for reason, count in each.items():
            total[reason] = total.get(reason, 0) + count
    return total

"""A run's totals: ``summary.json``, and ``best.py`` or the folder ``best``.

Covers: the figures that follow from a run's recorded history. Nothing is estimated: tokens are as
vLLM counted them, seconds as they were measured.
"""

import dataclasses
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.budget import Account, Limit
from engine.core import INITIAL, Novelty, Problem, Update, UserError
from engine.core.bundle import files_of, is_bundle
from engine.documents import read_json
from engine.durable import write_whole
from engine.report.clock import clock_use
from engine.settings import RunSettings
from engine.store import RunHistory
from engine.timeline import TIMELINE

PROBE = "probe.json"
"""Name of the file in a run's folder that ``engine.probe`` writes."""


def summarise(*, settings: RunSettings, problem: Problem, history: RunHistory) -> dict[str, Any]:
    """Return the run's figures.

    ``children`` counts completions; ``candidates`` those of them that were evaluated
    (the initial program does not count); ``refused`` says why the others were not.
    ``direction`` and ``features`` are the problem's, for a report when its folder is gone.
    ``screened`` counts the candidates that a cheap stage kept from a full evaluation,
    ``valid_share`` is that of the rest; ``unevaluated`` those that were in the evaluators' queue
    when time was up, or the run was stopped. ``screens_off`` has the cheap stages that stopped
    screening, and why.
    ``best_known`` is the best published score that compares, None where there is none;
    ``isolation`` how programs were kept from a judge (`engine.core.JudgeKind`), None without one.
    ``computed_prompt_tokens`` counts the prompt tokens that the prefix cache did not serve, by
    reason, ``speculation`` the calls begun on a guess, how many came true, and what the
    others cost, ``learning`` the steps of training (None where nothing learns).
    ``fills`` are the programs made without the model for idle evaluators, by their makers: none of
    the other figures counts them but the best score's, which ``best_made_by`` says who made.
    ``generated_tokens`` and the prompts' include those of the ``advisor``, which is None without
    one, and of the ``guidance``, likewise; an endpoint's, as it counts them, are there alone.
    Seconds are summed over all sessions:
    ``llm_seconds`` inside the engine's step, ``evaluation_seconds`` over all workers. ``money`` is
    what prompts and answers cost at the budget's prices, those of guesses that were given up
    included and those of an endpoint not; ``longest_wait`` the most candidates in a row that were
    no better than the best.
    """
    best, hits = history.best, history.guessed
    assert best is not None  # the initial program's, at least
    guesses = hits + len(history.given_up)
    return {
        "problem": problem.name,
        "direction": problem.direction.value,
        "features": [dataclasses.asdict(each) for each in problem.features],
        "model": settings.model.name,
        "seed": settings.seed,
        "width": settings.width.policy,
        "islands": settings.islands.count,
        "mean_k": len(history.children) / len(history.calls) if history.calls else None,
        "layout": settings.prompts.layout,
        "children": len(history.children),
        "candidates": history.evaluated,
        "valid": history.valid,
        "valid_share": history.valid / history.judged if history.judged else None,
        "screened": history.screened,
        "screens_off": {
            name: dataclasses.asdict(event) for name, event in history.switched_off.items()
        },
        "unevaluated": len(history.pending),
        "refused": {reason.value: count for reason, count in sorted(history.refusals.items())},
        "best_score": best.score,
        "best_candidate": best.candidate,
        "best_made_by": history.made_by(best.candidate),
        "initial_score": history.verdicts[INITIAL].score,
        "best_known": _best_known(problem),
        "isolation": None if problem.judge is None else problem.judge.kind.value,
        "prompt_tokens": history.prompt_tokens,
        "cached_prompt_tokens": history.cached_prompt_tokens,
        "hit_rate": history.hit_rate,
        "computed_prompt_tokens": dict(sorted(history.missed.items())),
        "speculation": {
            "guesses": guesses,
            "hits": hits,
            "hit_share": hits / guesses if guesses else None,
            "wasted_tokens": history.wasted_tokens,
            "wasted_prompt_tokens": (
                history.wasted_prompt_tokens - history.wasted_cached_prompt_tokens
            ),
            "wasted_llm_seconds": sum(each.llm_seconds for each in history.given_up),
        },
        "fills": {name: dataclasses.asdict(each) for name, each in history.filled.items()},
        "learning": learned(settings, history.updates),
        "generated_tokens": history.generated_tokens,
        "advisor": _advised(settings, history),
        "guidance": _guided(settings, history),
        "llm_seconds": history.llm_seconds,
        "evaluation_seconds": history.evaluation_seconds,
        "wall_seconds": history.wall_seconds,
        "sessions": len(history.sessions),
        "budget": dataclasses.asdict(settings.budget),
        "money": Account(settings.budget, history).money,
        "longest_wait": history.longest_wait,
    }


def _guided(settings: RunSettings, history: RunHistory) -> dict[str, Any] | None:
    """Return what came of rewriting the guidance; None for a run without."""
    if not settings.guidance.enabled:
        return None
    known = history.guidance
    tried = [
        each
        for island in {call.island for call in history.calls.values()}  # a schedule opens some
        for each in known.as_of(history.events, island=island)
        if each.score is not None
    ]
    key = history.direction.key
    best = min(tried, key=lambda each: key(each.score or 0.0), default=None)
    return {
        "written": len(known),
        "unread": known.unread,
        "tokens": history.guidance_tokens,
        "best_score": None if best is None else best.score,
        "best": None if best is None or best.id is None else known.text_of(best.id),
    }


def _advised(settings: RunSettings, history: RunHistory) -> dict[str, Any] | None:
    """Return what the advisor and its implementer did; None for a run without."""
    if not settings.advisor.enabled:
        return None
    advice, ideas = history.advice.values(), history.ideas
    answers = [each for one in advice for each in one.consultations]
    return {
        "implementer": settings.advisor.implementer,
        "endpoint_url": settings.advisor.endpoint.url,
        "endpoint_model": settings.advisor.endpoint.model,
        "chains": len(history.advice),
        "answers": len(answers),
        "advisor_tokens": history.advisor_tokens,
        "advisor_prompt_tokens": sum(each.prompt_tokens for each in answers),
        "advisor_cached_prompt_tokens": sum(each.cached_prompt_tokens for each in answers),
        "advisor_llm_seconds": sum(each.llm_seconds for each in answers),
        "ideas": {novelty.value: ideas.count(novelty) for novelty in Novelty},
        # Where the endpoint failed, nobody tried the idea.
        "tested_ideas": len({each.idea for each in advice if each.outage is None} - {None}),
        "unread": sum(each.unread is not None for each in advice),
        "outages": sum(each.outage is not None for each in advice),
        "endpoint_prompt_tokens": sum(each.endpoint_prompt_tokens for each in advice),
        "endpoint_tokens": sum(each.endpoint_tokens for each in advice),
        "endpoint_seconds": sum(each.endpoint_seconds for each in advice),
    }


def _best_known(problem: Problem) -> dict[str, Any] | None:
    comparable = [known for known in problem.known_scores if known.comparable]
    best = min(comparable, key=lambda known: problem.direction.key(known.score), default=None)
    return None if best is None else {"score": best.score, "source": best.source}


def learned(settings: RunSettings, updates: Sequence[Update]) -> dict[str, Any] | None:
    """Return what training came to: counts, seconds, and means over the steps that stand."""
    if settings.learning.method == "none":
        return None
    stand = [each for each in updates if each.stands]
    swapped = [each.swap_ms for each in updates if each.swap_ms]
    names = ("reward", "spread", "entropy", "gradient_norm", "clip_share", "lag", "mismatch")
    return {
        "method": settings.learning.method,
        "adapter": settings.learning.adapter,
        "version": updates[-1].version if updates else 0,
        "updates": len(stand),
        "skipped": sum(each.skipped is not None for each in updates),
        "rolled_back": sum(each.rolled_back is not None for each in updates),
        "groups": sum(len(each.groups) for each in stand),
        "stale_groups": sum(each.stale for each in updates),
        "seconds": sum(each.seconds for each in updates),
        "swap_ms": _mean(swapped),
        "longest_swap_ms": max(swapped, default=None),
        "probe": None,  # engine.probe adds it
        "kl": stand[-1].kl if stand else None,
        **{name: _mean([getattr(each, name) for each in stand]) for name in names},
    }


def _probed(path: Path) -> dict[str, Any] | None:
    """Return what ``engine.probe`` found without its rows; None if it has found nothing yet."""
    try:
        found = read_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict):
        return None
    return {name: value for name, value in found.items() if name != "prompts"}


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def write_results(
    *,
    folder: Path,
    settings: RunSettings,
    problem: Problem,
    history: RunHistory,
    ended_by: Limit | None,
) -> dict[str, Any]:
    """Write ``summary.json`` and the best program into the run's folder; return the summary.

    To the figures of `summarise` come ``ended_by``, the limit that the run reached first (None
    for one that may go on), and ``clock``, who used the time (`clock_use`; None where nothing
    was recorded). ``learning`` gets ``probe``, what ``engine.probe`` found (None before it did).

    Raises:
        UserError: one of them can't be written.
    """
    summary = summarise(settings=settings, problem=problem, history=history)
    summary["ended_by"] = None if ended_by is None else ended_by.value
    summary["clock"] = clock_use(folder / TIMELINE)
    if summary["learning"] is not None:
        summary["learning"]["probe"] = _probed(folder / PROBE)
    write_whole(folder / "summary.json", json.dumps(summary, indent=2) + "\n")
    write_program(folder, history.program_of(summary["best_candidate"]))
    return summary


def place_of(program: str) -> str:
    """Return where `write_program` writes a program: ``best.py``, or the folder ``best/``."""
    return "best/" if is_bundle(program) else "best.py"


def write_program(folder: Path, program: str) -> None:
    """Write a program to ``best.py``; one of named files into the folder ``best``."""
    if not is_bundle(program):
        write_whole(folder / place_of(program), program)
        return
    for name, text in files_of(program).items():
        path = folder / place_of(program) / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{path.parent} can't be made: {error.strerror}") from error
        write_whole(path, text)

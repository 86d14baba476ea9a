"""Who used a run's wall-clock time: the shares of a timeline.

Covers: how long the model and the evaluators were busy, together and alone, what they waited for,
and when.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.timeline import EVALUATORS, FILLERS, MODEL, OPENED, Activity, read_events


def clock_use(timeline: Path) -> dict[str, Any] | None:
    """Return the shares of the time in a timeline's file; None if it spans none or is missing.

    ``seconds`` are those of all ``sessions``, as far as they were recorded; all else is in shares
    of them. ``both`` is the share in which the model and at least one evaluator were busy, and
    with ``model_only``, ``evaluators_only`` and ``neither`` it sums to 1. So do those of the
    ``model`` and of each of the ``evaluators``, which were ``filling`` while they ran a fill and no
    candidate. The model was ``busy`` in the engine's step; it was
    ``awaiting_evaluations`` while it had nothing to decode until verdicts were in, and
    ``awaiting_parent`` until a parent was chosen, its prompt composed, ``awaiting_implementer``
    until an advisor's endpoint answered; in ``other`` nothing was recorded: what the process does
    between two steps, starts and ends.

    Raises:
        UserError: the file can't be read.
    """
    if not timeline.exists():
        return None
    done: Counter[tuple[int, str]] = Counter()  # us, by thread and activity
    work: list[tuple[int, int, bool]] = []  # start, end, whether it is the model's
    spans: dict[int, list[tuple[int, int]]] = {}  # start and end, of all but the model
    total = sessions = 0
    for event in read_events(timeline):
        end = event.ts + event.dur
        total = max(total, end)
        sessions += event.name == OPENED
        if event.tid != MODEL:
            spans.setdefault(event.tid, [])
        if event.ph == "X":
            done[event.tid, event.name] += event.dur
            if event.tid != MODEL:
                spans[event.tid].append((event.ts, end))
            if event.name in (Activity.STEP, Activity.EVALUATE):
                work.append((event.ts, end, event.tid == MODEL))
    if not total:
        return None

    activities = {
        "busy": Activity.STEP,
        "awaiting_evaluations": Activity.AWAIT_EVALUATIONS,
        "awaiting_parent": Activity.AWAIT_PARENT,
        "awaiting_implementer": Activity.AWAIT_IMPLEMENTER,
    }
    model = {name: done[MODEL, activity] for name, activity in activities.items()}
    evaluators = {
        tid - EVALUATORS: {
            "busy": done[tid, Activity.EVALUATE],
            "filling": _beyond(spans.get(tid - EVALUATORS + FILLERS, []), spans[tid]),
        }
        for tid in sorted(spans)
        if tid < FILLERS
    }
    return {
        "seconds": total / 1e6,
        "sessions": sessions,
        "model": _shares(model, "other", total),
        "evaluators": [
            {"number": number, **_shares(us, "awaiting_candidates", total)}
            for number, us in evaluators.items()
        ],
        **_shares(_overlap(work), "neither", total),
    }


def busy_over_time(timeline: Path, *, bins: int) -> list[dict[str, float]]:
    """Return, for spans of equal length, the shares in which the model and evaluators were busy.

    ``since`` and ``until`` are seconds on the timeline; ``evaluators`` is the mean over all that
    the timeline has. Empty if it spans no time or is missing.

    Raises:
        UserError: the file can't be read.
    """
    if not timeline.exists():
        return []
    spans: dict[int, list[tuple[int, int]]] = {}  # start and end in us, by thread
    evaluators: set[int] = set()
    total = 0
    for event in read_events(timeline):
        total = max(total, event.ts + event.dur)
        if MODEL < event.tid < FILLERS:
            evaluators.add(event.tid)
        if event.ph == "X" and event.name in (Activity.STEP, Activity.EVALUATE):
            spans.setdefault(event.tid, []).append((event.ts, event.ts + event.dur))
    if not total:
        return []
    edges = np.linspace(0, total, bins + 1)
    busy = {tid: _busy(of_thread, edges) for tid, of_thread in spans.items()}
    nothing = np.zeros(bins)
    model = busy.pop(MODEL, nothing)
    evaluating = sum(busy.values(), nothing) / max(1, len(evaluators))
    return [
        {"since": since / 1e6, "until": until / 1e6, "model": share, "evaluators": of_evaluators}
        for since, until, share, of_evaluators in zip(
            edges[:-1].tolist(),
            edges[1:].tolist(),
            model.tolist(),
            evaluating.tolist(),
            strict=True,
        )
    ]


def _busy(spans: Sequence[tuple[int, int]], edges: NDArray[Any]) -> NDArray[Any]:
    """Return the share of the time between each two edges that spans of one thread fill."""
    shares: NDArray[Any] = np.diff(_until(spans, edges)) / np.diff(edges)
    return shares


def _beyond(spans: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> int:
    """Return the us that spans of one thread fill and those of another do not."""
    both = np.diff(_until(others, np.array(spans).ravel()).reshape(-1, 2)).sum() if spans else 0
    return sum(end - start for start, end in spans) - int(both)


def _until(spans: Sequence[tuple[int, int]], times: NDArray[Any]) -> NDArray[Any]:
    """Return the us that the spans of one thread fill until each time."""
    if not spans:
        return np.zeros(len(times))
    # The spans of a thread follow each other, so what they filled until a time is a broken line.
    filled = np.cumsum([0, *(end - start for start, end in spans)])
    until: NDArray[Any] = np.interp(times, np.array(spans).ravel(), np.repeat(filled, 2)[1:-1])
    return until


def _shares(us: Mapping[str, int], rest: str, total: int) -> dict[str, float]:
    """Return what took some us as shares of ``total``, and what is left of that as ``rest``."""
    return {name: each / total for name, each in {**us, rest: total - sum(us.values())}.items()}


def _overlap(work: Sequence[tuple[int, int, bool]]) -> dict[str, int]:
    """Return the us in which both were busy, the model alone, and evaluators alone."""
    start, end, is_model = np.array(work, np.int64).reshape(-1, 3).T
    times = np.concatenate([start, end])
    order = np.argsort(times)
    change = np.concatenate([np.ones_like(start), -np.ones_like(end)])[order]
    model = np.tile(is_model, 2)[order]
    model_busy = np.cumsum(change * model)[:-1] > 0
    evaluators_busy = np.cumsum(change * (1 - model))[:-1] > 0
    lasting = np.diff(times[order])
    return {
        "both": int(lasting[model_busy & evaluators_busy].sum()),
        "model_only": int(lasting[model_busy & ~evaluators_busy].sum()),
        "evaluators_only": int(lasting[~model_busy & evaluators_busy].sum()),
    }

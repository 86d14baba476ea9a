"""Question: how long does a thread that scores exactly hold up the thread that decodes?

Method: this thread takes steps of `CALLS` calls of about `CALL_SECONDS`, with the switch interval
that the decoder sets: in ``decoding`` each call lets go of the GIL, as in a step of vLLM's; in
``python`` none does, and the GIL is lost only to a thread that asks for it. Beside it a thread
scores one answer after the other, without a pause: ``reference``, in Python's integers, as scores
once were, and ``native``, without the GIL (``native/``); ``idle`` is a thread that sleeps. They
take turns, round by round. What counts is how long the steps were blocked: their time less what
they ran and less what they waited for a core, both of which the kernel counts
(``/proc/thread-self/schedstat``), so that other work on the machine does not show. Where that work
takes the cores, it is a lower bound: who waits for the GIL may queue for its holder's core as well.
Reported for each answer: ``score_ms``, what a score takes alone; for both kinds of steps,
``blocked_percent`` of their time and ``blocked_ms`` for each score. Medians over the rounds, with
the lowest and the highest.

``packing`` is 26 circles that touch each other or a wall, to an ulp; ``overlapping`` 26 that all
overlap; ``uncertainty_N`` a combination of N Hermite polynomials.

Usage: python -m bench.exact [seconds=2] [rounds=5] [out=FILE]
``seconds`` is for each of the three, in each round, of each kind of steps. The last line printed is
JSON.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.figures import spread
from bench.options import number, read_options, run_as_command, whole_number
from kernels import (
    circle_packing,
    circle_packing_reference,
    uncertainty,
    uncertainty_reference,
)
from kernels.circle_packing import Floats

DEFAULTS = {"seconds": "2", "rounds": "5", "out": ""}
CALLS = 120
CALL_SECONDS = 10e-6
SWITCH_SECONDS = 1e-4

Score = Callable[[], object]
Call = Callable[[], object]


def packing(*, overlapping: bool) -> tuple[Floats, Floats]:
    """Return 26 circles, always the same."""
    rng = np.random.default_rng(26)
    centers = rng.random((26, 2))
    if overlapping:
        return centers, np.full(26, 0.5)
    walls = np.minimum(centers, 1 - centers).min(axis=1)
    distances = np.hypot(*(centers[:, None] - centers[None]).transpose(2, 0, 1))
    np.fill_diagonal(distances, np.inf)
    return centers, np.minimum(walls, distances.min(axis=1) / 2)


def combination(count: int) -> list[float]:
    """Return ``count`` coefficients of a size that is of use, always the same."""
    rng = np.random.default_rng(count)
    at_zero = [float(abs(uncertainty_reference.hermite(4 * k)[0])) for k in range(count)]
    return [float(value) for value in rng.normal(size=count) / at_zero]


def answers() -> dict[str, dict[str, Score]]:
    """Return the two ways to score each answer, by the answer's name."""
    scores: dict[str, dict[str, Score]] = {}
    for name, given in {
        "packing": packing(overlapping=False),
        "overlapping": packing(overlapping=True),
    }.items():
        scores[name] = {
            "reference": partial(circle_packing_reference.exact_packing, *given),
            "native": partial(circle_packing.exact_packing, *given),
        }
    for count in (3, 8, 32):
        given = combination(count)
        scores[f"uncertainty_{count}"] = {
            "reference": partial(uncertainty_reference.sign_uncertainty, given),
            "native": partial(uncertainty.sign_uncertainty, given),
        }
    for ways in scores.values():
        if ways["reference"]() != ways["native"]():
            raise RuntimeError("the two ways to score disagree")
    return scores


def calls() -> dict[str, Call]:
    """Return what a step calls, of each kind."""
    given, most = piece(), round(CALL_SECONDS / seconds_of(lambda: sum(range(10_000))) * 10_000)
    return {"decoding": lambda: zlib.crc32(given), "python": lambda: sum(range(most))}


def piece() -> bytes:
    """Return what ``zlib.crc32`` needs `CALL_SECONDS` for, without the GIL."""
    given = bytes(1 << 14)
    while seconds_of(partial(zlib.crc32, given)) < CALL_SECONDS:
        given = bytes(2 * len(given))
    return given


def seconds_of(call: Call) -> float:
    """Return the least seconds of 50 calls."""
    times = []
    for _ in range(50):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def steps(seconds: float, call: Call) -> tuple[float, float]:
    """Take steps for ``seconds``; return how long they took and how much of that was blocked."""
    began, waited = time.perf_counter(), ran_and_queued()
    while time.perf_counter() < began + seconds:
        for _ in range(CALLS):
            call()
    spent = time.perf_counter() - began
    return spent, max(0.0, spent - (ran_and_queued() - waited))


def ran_and_queued() -> float:
    """Return the seconds that this thread has run and has waited for a core."""
    ran, queued, _ = Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()
    return (int(ran) + int(queued)) / 1e9


def beside(score: Score, seconds: float, call: Call) -> tuple[float, float, int]:
    """Take steps beside a thread that scores; return their times, and how many it scored."""
    over, scored = threading.Event(), 0

    def work() -> None:
        nonlocal scored
        while not over.is_set():
            score()
            scored += 1

    thread = threading.Thread(target=work, name="scorer")
    thread.start()
    try:
        spent, blocked = steps(seconds, call)
    finally:
        over.set()
        thread.join()
    return spent, blocked, scored


def measured(ways: Mapping[str, Score], *, seconds: float, rounds: int) -> dict[str, Any]:
    """Return the figures of one answer."""
    taken = calls()
    all_ways: dict[str, Score] = {"idle": lambda: time.sleep(0.1), **ways}
    percent = {kind: {way: list[float]() for way in all_ways} for kind in taken}
    each_ms = {kind: {way: list[float]() for way in ways} for kind in taken}
    for _, (kind, call), (way, score) in itertools.product(
        range(rounds), taken.items(), all_ways.items()
    ):
        spent, blocked, scored = beside(score, seconds, call)
        percent[kind][way].append(100 * blocked / spent)
        if way in ways:
            each_ms[kind][way].append(1e3 * blocked / max(1, scored))
    return {
        "score_ms": {way: round(1e3 * seconds_of(score), 3) for way, score in ways.items()},
        **{
            kind: {
                "blocked_percent": {way: spread(each) for way, each in percent[kind].items()},
                "blocked_ms": {way: spread(each) for way, each in each_ms[kind].items()},
            }
            for kind in taken
        },
    }


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    seconds, rounds = number(options, "seconds"), whole_number(options, "rounds")
    sys.setswitchinterval(SWITCH_SECONDS)
    cores = len(os.sched_getaffinity(0))
    figures: dict[str, Any] = {"cores": cores, "options": options, "answers": {}}
    for name, ways in answers().items():
        figures["answers"][name] = each = measured(ways, seconds=seconds, rounds=rounds)
        shares = {
            kind: {way: share["median"] for way, share in each[kind]["blocked_percent"].items()}
            for kind in ("decoding", "python")
        }
        sys.stdout.write(f"{name}: percent blocked: {shares}\n")
        sys.stdout.flush()
    line = json.dumps(figures)
    if options["out"]:
        Path(options["out"]).write_text(line + "\n", encoding="utf-8")
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    run_as_command(main)

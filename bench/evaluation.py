"""Question: what does the sandbox cost, and how many evaluations does a core give?

Method, for each problem and its initial program, full stage alone, everything warm: three things
take turns, round by round, so that a change of the machine's speed meets them alike:

- ``sandbox``: one worker, one program at a time, with a pause of `PAUSE` seconds before each, as a
  model needs longer for a child; latency from the call to the verdict. The pause is when the worker
  readies itself for the next program; with a full queue that time shows in ``per_second``. Part of
  the latency is ``process``, the program's own processes as the sandbox timed them.
- ``bare``: the same program, contract and scoring in one plain process (``bench.bare``).
- ``floor``: the sandbox with an empty program: what walls, fork and answer cost by themselves.

A zygote learns from the problem's initial program which pages of memory to make ready for a program
that is to come. So the initial program is its best case.

``overhead`` = sandbox - bare: of the medians, over all rounds; with the lowest and highest of the
rounds'; and p99 of sandbox minus the median of bare, the program's own jitter included. A problem
that isolates its cases starts a process for each; ``processes`` says how many. ``per_second`` are
finished evaluations with a full queue: of one worker, and of one worker for each core.

For ``signal``, the same programs also through OpenEvolve's own `Evaluator` (environment and
evaluation file: ``bench.peer``, ``bench.openevolve_evaluator``), in turns with ours, for two
programs: the initial one, and the same filter as one convolution, which takes next to no time
itself. OpenEvolve is measured in three ways: ``evaluate``, in a thread of its own process, as its
example for this problem does it; ``evaluate_arrays``, the same without Python loops over samples;
``evaluate_process``, a fresh interpreter for each program, as its circle_packing example does it:
the only one of them that can end a program. ``core``: one worker against one process that
evaluates one program after the other; ``machine``: a worker for each core against a process for
each core, as OpenEvolve's controller has it; ``threads``: one process with
``parallel_evaluations`` = cores. ``parts`` says where the milliseconds of ``evaluate`` go. A
``ratio`` is ours / OpenEvolve's evaluations per second, of the medians over the rounds. Then an
endless loop and, after it, good programs, each with 5 s: ``after_endless_loop`` counts those that
got their right score.

Does not cover: cascades, and problems on more than one machine.

Usage: python -m bench.evaluation [problems=signal,...] [seconds=30] [rounds=5] [openevolve=true]
``seconds`` is for each problem; one whose program takes long gets what its rounds take. For
OpenEvolve it is doubled. The last line printed is JSON, times in ms.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench import bare, peer
from bench.figures import milliseconds, percentile, spread
from bench.lines import HelperProcess
from bench.options import number, read_options, run_as_command, whole_number
from engine.core import Evaluation, Problem, UserError
from engine.evaluation import EvaluatorPool, open_pool
from engine.problem import load_problem, shipped

CORES = len(os.sched_getaffinity(0))
WARM_UPS = 3
PAUSE = 0.02
EMPTY = "pass\n"
CONVOLUTION = """\
import numpy as np


def run_signal_processing(noisy_signal, window_size=20):
    weights = np.exp(np.linspace(-2, 0, window_size))
    filtered = np.convolve(noisy_signal, (weights / weights.sum())[::-1], "valid")
    return {"filtered_signal": filtered}
"""
ENDLESS = """\
def run_signal_processing(noisy_signal, window_size=20):
    while True:
        pass
"""
WAYS = ("evaluate", "evaluate_arrays", "evaluate_process")
TURNS = 2 * (1 + len(WAYS)) + 1
AFTER = 3  # good programs after the endless one; OpenEvolve may take the limit for each


def repeat(call: Callable[[], Evaluation], *, seconds: float) -> list[tuple[float, Evaluation]]:
    """Call for ``seconds``, at least once; return the latency of each call and its result."""
    results: list[tuple[float, Evaluation]] = []
    began = time.perf_counter()
    while not results or time.perf_counter() - began < seconds:
        time.sleep(PAUSE)
        started = time.perf_counter()
        evaluation = call()
        results.append((time.perf_counter() - started, evaluation))
    return results


def evaluate(pool: EvaluatorPool, program: str) -> Evaluation:
    """Return the verdict on a program, by a pool that has nothing else to do."""
    pool.submit(candidate_id="program", program=program)
    ((_, evaluation),) = pool.completed(timeout=None)
    return evaluation


def rate(pool: EvaluatorPool, program: str, *, seconds: float, workers: int) -> float:
    """Return the evaluations per second of a pool whose queue is kept full for ``seconds``."""
    names = map(str, itertools.count())
    for _ in range(2 * workers):
        pool.submit(candidate_id=next(names), program=program)
    count = 0
    began = time.perf_counter()
    while pool.in_flight:
        finished = pool.completed(timeout=None)
        count += len(finished)
        if time.perf_counter() - began < seconds:
            for _ in finished:
                pool.submit(candidate_id=next(names), program=program)
    return count / (time.perf_counter() - began)


def measure(problem: Problem, *, seconds: float, rounds: int) -> dict[str, Any]:
    """Return the figures of one problem."""
    program = problem.initial_program
    sandbox: list[list[tuple[float, Evaluation]]] = []
    plain: list[list[float]] = []
    floor: list[float] = []
    rates: dict[str, list[float]] = {"worker": [], "machine": []}
    with (
        open_pool(problem=problem, workers=1) as one,
        open_pool(problem=problem, workers=CORES) as every,
        bare.start(problem.folder) as process,
    ):
        expected = process.ask(program=program, seconds=0, warm=True)["score"]
        for pool, workers in ((one, 1), (every, CORES)):
            rate(pool, program, seconds=0, workers=WARM_UPS * workers)
        for _ in range(rounds):
            turn = seconds / rounds
            sandbox.append(repeat(lambda: evaluate(one, program), seconds=0.35 * turn))
            plain.append(process.ask(program=program, seconds=0.2 * turn)["seconds"])
            floor += [t for t, _ in repeat(lambda: evaluate(one, EMPTY), seconds=0.05 * turn)]
            rates["worker"].append(rate(one, program, seconds=0.2 * turn, workers=1))
            rates["machine"].append(rate(every, program, seconds=0.2 * turn, workers=CORES))
    return _figures(problem, sandbox, plain, floor, rates) | {
        "wrong": sum(
            not _agrees(problem, evaluation, expected) for turn in sandbox for _, evaluation in turn
        )
    }


def _agrees(problem: Problem, evaluation: Evaluation, expected: float) -> bool:
    """Return whether a verdict is the bare one; scores with a time in them may differ."""
    return evaluation.score is not None if problem.isolate_cases else evaluation.score == expected


def _figures(
    problem: Problem,
    sandbox: list[list[tuple[float, Evaluation]]],
    plain: list[list[float]],
    floor: list[float],
    rates: dict[str, list[float]],
) -> dict[str, Any]:
    ours = [latency for turn in sandbox for latency, _ in turn]
    inside = [evaluation.seconds for turn in sandbox for _, evaluation in turn]
    bares = [latency for turn in plain for latency in turn]
    middle = statistics.median(bares)
    by_round = [
        1e3 * (statistics.median(latency for latency, _ in a) - statistics.median(b))
        for a, b in zip(sandbox, plain, strict=True)
    ]
    return {
        "processes": len(problem.cases) if problem.isolate_cases else 1,
        "sandbox_ms": milliseconds(ours),
        "process_ms": milliseconds(inside),
        "bare_ms": milliseconds(bares),
        "floor_ms": milliseconds(floor),
        "overhead_ms": {
            "median": round(1e3 * (statistics.median(ours) - middle), 3),
            "p99": round(1e3 * (percentile(ours, 99) - middle), 3),
            "low": round(min(by_round), 3),
            "high": round(max(by_round), 3),
        },
        "per_second": {name: spread(values) for name, values in rates.items()},
    }


def compare(problem: Problem, *, seconds: float, rounds: int) -> dict[str, Any]:
    """Return the figures of ours and OpenEvolve's evaluations of ``signal``, side by side."""
    python = peer.make_environment()
    programs = {"initial": problem.initial_program, "convolution": CONVOLUTION}
    with (
        tempfile.TemporaryDirectory(prefix="brood-bench-") as folder,
        open_pool(problem=problem, workers=1) as one,
        open_pool(problem=problem, workers=CORES) as every,
        peer.start(python, Path(folder)) as other,
    ):
        result: dict[str, Any] = {
            name: _compare_program(
                program, one, every, other, turn=seconds / rounds / len(programs), rounds=rounds
            )
            for name, program in programs.items()
        }
        result["after_endless_loop"] = _compare_endless(problem, one, other)
    return result


def _compare_program(
    program: str,
    one: EvaluatorPool,
    every: EvaluatorPool,
    other: HelperProcess,
    *,
    turn: float,
    rounds: int,
) -> dict[str, Any]:
    def ours(pool: EvaluatorPool, workers: int) -> float:
        return rate(pool, program, seconds=turn / TURNS, workers=workers)

    def theirs(mode: str, way: str) -> float:
        answer = other.ask(mode=mode, program=program, seconds=turn / TURNS, workers=CORES, way=way)
        return float(answer["evaluations"] / answer["seconds"])

    measures: dict[str, Callable[[], float]] = {
        "ours_core": partial(ours, one, 1),
        **{f"core_{way}": partial(theirs, "single", way) for way in WAYS},
        "ours_machine": partial(ours, every, CORES),
        **{f"machine_{way}": partial(theirs, "processes", way) for way in WAYS},
        "threads_evaluate": partial(theirs, "threads", "evaluate"),
    }
    for call in measures.values():  # a round that does not count: warms both sides
        call()
    rates: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name, call in measures.items():
            rates[name].append(call())
    middle = {name: statistics.median(values) for name, values in rates.items()}
    score = evaluate(one, program).score
    scores = [
        other.ask(mode="single", program=program, seconds=0, way=way)["score"] for way in WAYS
    ]
    return {
        "per_second": {name: spread(values) for name, values in rates.items()},
        "ratio": {
            name: round(
                middle["ours_core" if name.startswith("core") else "ours_machine"] / each, 2
            )
            for name, each in middle.items()
            if not name.startswith("ours")
        },
        "parts_ms": {
            name: round(1e3 * part, 3)
            for name, part in other.ask(mode="parts", program=program, repetitions=50).items()
        },
        "same_score": all(_close(score, each) for each in scores),
    }


def _compare_endless(problem: Problem, pool: EvaluatorPool, other: HelperProcess) -> dict[str, Any]:
    """Evaluate an endless loop and then good programs, on both sides; see the module's text."""
    programs = [ENDLESS] + [CONVOLUTION] * AFTER
    began = time.perf_counter()
    ours = [evaluate(pool, program).score for program in programs]
    seconds = time.perf_counter() - began
    result: dict[str, Any] = {
        "programs_after": AFTER,
        "ours": {
            "right": sum(_close(score, ours[-1]) for score in ours[1:]),
            "seconds": round(seconds, 3),
        },
    }
    # `evaluate` comes last, for the thread with the loop can't be ended but with its process. Its
    # limit is that of the evaluator; `evaluate_process` has its own.
    for way, limit in (("evaluate_process", 60.0), ("evaluate", problem.limits.seconds)):
        answer = other.ask(mode="programs", programs=programs, limit=limit, way=way)
        result[way] = {
            "right": sum(_close(score, ours[-1]) for score in answer["scores"][1:]),
            "seconds": round(answer["seconds"], 3),
        }
    return result


def _close(score: float | None, expected: float | None) -> bool:
    """Return whether two scores are one, but for the order of sums."""
    return score is not None and expected is not None and abs(score - expected) < 1e-9


def main(arguments: list[str]) -> None:
    """Measure and print."""
    folders = shipped()
    options = read_options(
        arguments,
        {"problems": ",".join(folders), "seconds": "30", "rounds": "5", "openevolve": "true"},
        usage=__doc__ or "",
    )
    names = options["problems"].split(",")
    unknown = [name for name in names if name not in folders]
    if unknown:
        raise UserError(f"no problem {unknown[0]!r}; there are: {', '.join(folders)}")
    if options["openevolve"] not in ("true", "false"):
        raise UserError(f"openevolve={options['openevolve']} must be true or false")
    seconds, rounds = number(options, "seconds"), whole_number(options, "rounds")
    result: dict[str, Any] = {"cores": CORES, "problems": {}}
    for name in names:
        problem = load_problem(folders[name])
        figures = measure(problem, seconds=seconds, rounds=rounds)
        print(f"{name}: {figures}", flush=True)
        result["problems"][name] = figures
    if options["openevolve"] == "true":
        problem = load_problem(folders["signal"])
        result["openevolve"] = compare(problem, seconds=2 * seconds, rounds=rounds)
    print(json.dumps(result))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run_as_command(main)

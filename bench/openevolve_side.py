"""OpenEvolve's side of ``bench.evaluation``: runs inside OpenEvolve's own environment.

Usage: python openevolve_side.py EVALUATION_FILE

Reads one JSON object a line, answers each with one. ``{"mode", "program", "seconds", "way", ...}``,
where "way" is the function of the evaluation file; modes:

- ``single``: one process, one `Evaluator`, one program after the other; each in an ``asyncio.run``
  of its own, as OpenEvolve's worker processes do it.
- ``threads``: one `Evaluator` with ``parallel_evaluations`` = "workers", fed by
  ``evaluate_multiple``.
- ``processes``: "workers" processes from a ``ProcessPoolExecutor``, each with an `Evaluator` of its
  own: what OpenEvolve's ``process_parallel`` controller does with children it has from a model.
- ``parts``: median seconds of the pieces of one evaluation.
- ``programs``: the "programs", one after the other, each with a limit of "limit" seconds; their
  scores in order, None for those without one.

Direct evaluation (no cascade), no retries, no model's feedback, logging off: the leanest
configuration. Does not cover its prompts, its database, or its language models.
"""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from openevolve.config import EvaluatorConfig
from openevolve.evaluator import Evaluator

_BATCH = 4  # programs for each thread that are handed over at a time: keeps all threads busy


def make(path: str, *, workers: int = 1, limit: float = 60.0, way: str = "evaluate") -> Evaluator:
    """Return OpenEvolve's evaluator for function ``way`` of the evaluation file at ``path``."""
    config = EvaluatorConfig(
        timeout=limit, max_retries=0, cascade_evaluation=False, parallel_evaluations=workers
    )
    evaluator = Evaluator(config, path)
    evaluator.evaluate_function = getattr(sys.modules["evaluation_module"], way)
    return evaluator


def single(path: str, request: dict[str, Any]) -> dict[str, Any]:
    """Evaluate one program again and again, one at a time."""
    evaluator = make(path, way=request["way"])
    latencies: list[float] = []
    score = None
    began = time.perf_counter()
    while not latencies or time.perf_counter() - began < request["seconds"]:
        started = time.perf_counter()
        score = asyncio.run(evaluator.evaluate_program(request["program"], "x"))["combined_score"]
        latencies.append(time.perf_counter() - started)
    return {"evaluations": len(latencies), "seconds": sum(latencies), "score": score}


def threads(path: str, request: dict[str, Any]) -> dict[str, Any]:
    """Evaluate batches in one process with several threads."""
    evaluator = make(path, workers=request["workers"], way=request["way"])
    batch = [(request["program"], f"x{i}") for i in range(_BATCH * request["workers"])]

    async def run() -> tuple[int, float]:
        count, began = 0, time.perf_counter()
        while not count or time.perf_counter() - began < request["seconds"]:
            count += len(await evaluator.evaluate_multiple(batch))
        return count, time.perf_counter() - began

    count, seconds = asyncio.run(run())
    return {"evaluations": count, "seconds": seconds}


_worker: Evaluator | None = None


def _start_worker(path: str, way: str) -> None:
    global _worker  # one of each process, as in OpenEvolve's own workers
    _worker = make(path, way=way)


def _work(program: str, seconds: float) -> float:
    """Evaluate for ``seconds``, one at a time; return the evaluations per second."""
    assert _worker is not None
    asyncio.run(_worker.evaluate_program(program, "x"))  # the process's first does not count
    count, began = 0, time.perf_counter()
    while not count or time.perf_counter() - began < seconds:
        asyncio.run(_worker.evaluate_program(program, "x"))
        count += 1
    return count / (time.perf_counter() - began)


def processes(path: str, request: dict[str, Any]) -> dict[str, Any]:
    """Evaluate in several processes, each with an evaluator of its own."""
    workers = request["workers"]
    pool = ProcessPoolExecutor(workers, initializer=_start_worker, initargs=(path, request["way"]))
    with pool:
        seconds = [request["seconds"]] * workers
        rates = list(pool.map(_work, [request["program"]] * workers, seconds))
    return {"evaluations": sum(rates), "seconds": 1.0}


def parts(path: str, request: dict[str, Any]) -> dict[str, Any]:
    """Take an evaluation apart; ``evaluator`` is what OpenEvolve adds to the evaluation file."""
    evaluator = make(path)
    evaluator.evaluate_function = lambda _: {"combined_score": 0.0}
    rows: list[dict[str, float]] = []
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(request["program"])
        file.flush()
        for _ in range(request["repetitions"]):
            row = sys.modules["evaluation_module"].parts(file.name)
            started = time.perf_counter()
            asyncio.run(evaluator.evaluate_program(request["program"], "x"))
            row["evaluator"] = time.perf_counter() - started
            rows.append(row)
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def programs(path: str, request: dict[str, Any]) -> dict[str, Any]:
    """Evaluate different programs in order, with one evaluator."""
    evaluator = make(path, limit=request["limit"], way=request["way"])
    scores = []
    began = time.perf_counter()
    for program in request["programs"]:
        metrics = asyncio.run(evaluator.evaluate_program(program, "x"))
        scores.append(metrics.get("combined_score"))
    return {"scores": scores, "seconds": time.perf_counter() - began}


MODES = {each.__name__: each for each in (single, threads, processes, parts, programs)}


def main(arguments: list[str]) -> None:
    """Serve the requests on standard input until it ends, or this process is killed."""
    logging.disable(logging.CRITICAL)
    # Programs may print, and so may OpenEvolve; answers go where neither writes.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    multiprocessing.set_start_method("fork")  # Linux's default until Python 3.14
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(MODES[request["mode"]](arguments[0], request)), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

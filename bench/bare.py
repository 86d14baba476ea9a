"""Bare evaluations: a program's own work and its scoring, in one plain process, with no walls.

What the sandbox is measured against (``bench.evaluation``), and where a program's exact score is
known from (``bench.soak``). One evaluation is: execute the text as a module (once; where the
problem isolates its cases, once for each), call it for the cases, pack and unpack what it
returns under the contract, score. All libraries are imported and all kernels compiled before.

Usage: python -m bench.bare PROBLEM_FOLDER CORE, pinned to that core and with one thread; requests
and answers as in `serve`. Runs trusted programs only.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from bench.lines import HelperProcess
from engine.core import SECONDS, Array, Case, Problem
from engine.evaluation.contract import pack, unpack
from engine.evaluation.cores import evaluator_cores
from engine.problem import load_problem

ROOT = Path(__file__).resolve().parents[1]
_WARM_UPS = 3


def start(folder: Path) -> HelperProcess:
    """Start bare evaluations of the problem in ``folder``, on the core of a pool's first worker."""
    (core,) = evaluator_cores(1)
    command = [sys.executable, "-m", "bench.bare", str(folder), str(core)]
    return HelperProcess(command, environment={"PYTHONHASHSEED": "0"}, cwd=ROOT)


def evaluate(problem: Problem, text: str) -> float:
    """Return the score of a program under the full stage.

    Raises:
        Exception: whatever the program, the contract or the scorer raises.
    """
    groups = [(case,) for case in problem.cases] if problem.isolate_cases else [problem.cases]
    outputs: list[dict[str, Array]] = []
    for cases in groups:
        began = time.perf_counter()
        results = _run(problem, text, cases)
        seconds = np.array(time.perf_counter() - began)
        for arrays in results:
            extra = {SECONDS: seconds} if problem.isolate_cases else {}
            outputs.append({**arrays, **extra})
    return float(problem.score(outputs)["score"])


def _run(problem: Problem, text: str, cases: Sequence[Case]) -> list[dict[str, Array]]:
    module = ModuleType("candidate")
    sys.modules[module.__name__] = module  # dataclasses look their own module up
    exec(compile(text, "<program>", "exec", dont_inherit=True), module.__dict__)
    function = getattr(module, problem.entry_point)
    packed = b"".join(pack(function(*case.args, **case.kwargs), case) for case in cases)
    return [dict(arrays) for arrays in unpack(packed, cases)]


def serve(problem: Problem, request: dict[str, Any]) -> dict[str, Any]:
    """Answer one request.

    ``{"program", "seconds"}``: evaluate it for so long, at least once; returns the ``score`` and
    the ``seconds`` of each evaluation. ``{"programs"}``: their ``scores``, in order.
    """
    if "programs" in request:
        return {"scores": [evaluate(problem, text) for text in request["programs"]]}
    for _ in range(_WARM_UPS if request.get("warm") else 0):
        evaluate(problem, request["program"])
    latencies: list[float] = []
    score = 0.0
    began = time.perf_counter()
    while not latencies or time.perf_counter() - began < request["seconds"]:
        started = time.perf_counter()
        score = evaluate(problem, request["program"])
        latencies.append(time.perf_counter() - started)
    return {"seconds": latencies, "score": score}


def main(arguments: list[str]) -> None:
    """Serve the requests on standard input until it ends."""
    folder, core = arguments
    os.sched_setaffinity(0, {int(core)})
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print must not mix with the answers
    problem = load_problem(Path(folder))
    for name in problem.modules:
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(serve(problem, json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

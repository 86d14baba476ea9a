"""Question: how many children a second does the control plane handle, and what does a decoder pay?

Method: whole runs of ``python -m engine.run``, each in a process of its own, with the event log on
the disk, on a problem whose initial program has 67 lines (``bench/control_problem``). An evaluator
that runs nothing takes the place of the sandbox: a program's score is its checksum, there at once,
and the loop and the decoder have all cores (``evaluator=real`` puts the real evaluators back, on
cores of their own). The model is one of these:

- ``mutation``: the engine's own, which changes syntax trees. Its work is Python too, in the
  decoder's thread; figures of a child have it apart. The run ends after ``candidates``.
- ``stand-in``: it replays a recorded answer, a diff of one line, with another number each time, and
  operator ``diff`` reads it. 256 requests are in flight (32 islands, K = 8), and each gets a token
  in a step. A step that is alone takes 25.6 ms, so that 10,000 tokens a second are decoded: it
  makes 120 calls of 10 us that let go of the GIL, as many as a step of vLLM's, and then waits as
  for a GPU, without the GIL. ``rates`` are the children a second that it offers: an answer has
  10,000 / rate tokens, a quarter more or less. A run lasts ``seconds``.

Rounds are interleaved, this version and the one in ``baseline`` (a checkout with an environment of
its own, such as a ``git worktree``) in turns; each figure is the median of the rounds with the
lowest and the highest. Reported:

- ``children_per_second``: of the last nine tenths of a run, those that are refused too;
- ``loop_ms``, ``decoder_ms``, ``other_ms``: CPU ms a child of the loop's thread, the decoder's, and
  all other Python threads, by the threads' clocks. All Python needs the GIL, so this bounds what
  the GIL is held for from above: calls that let go of it, as SQLite's do, count too, waits do not;
- ``processes_ms``: CPU ms a child of worker processes, their start included, in versions with any;
- ``work_median``, ``work_p90``: a step's 120 calls, over those of a step beside which no thread
  runs, measured in the same process before and after the run; ``whole_median`` and ``whole_p90``:
  the step with its wait for the GPU, likewise; ``cycle_median`` and ``cycle_p90``: from one step's
  begin to the next one's while requests run, which has what the decoder does between them too;
- ``alone_ms``: the 120 calls of a step alone; ``fsync_ms``: what a write of 4 KiB takes until it is
  on the disk, before each run;
- ``ratio``: this version's figure over the baseline's, paired by round;
- ``most_children_per_second``: where the loop saturates, the largest median over all ``rates``;
- ``same_children``: whether both versions made the same children with ``mutation``.

Usage: python -m bench.control [baseline=FOLDER] [rounds=3] [models=mutation,stand-in]
       [rates=100,300,500,1000,2000] [candidates=500] [seconds=15] [evaluator=trivial] [seed=0]
The last line printed is JSON.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import spread
from bench.options import number, read_options, run_as_command, whole_number
from engine.core import UserError

ROOT = Path(__file__).resolve().parents[1]
PROBLEM = ROOT / "bench" / "control_problem"
SIDE = ROOT / "bench" / "control_side.py"
TOKENS_PER_SECOND = 10_000
DEFAULTS = {
    "baseline": "",
    "rounds": "3",
    "models": "mutation,stand-in",
    "rates": "100,300,500,1000,2000",
    "candidates": "500",
    "seconds": "15",
    "evaluator": "trivial",
    "seed": "0",
}
STAND_IN = (
    *("model=smollm2", "search.operators.infill=0", "search.operators.diff=1"),
    *("model.max_model_len=16384", "prompts.history_tokens=2048", "prompts.align=false"),
    *("islands.count=32", "search.k=8", "pipeline.children=256", "budget.candidates=null"),
)
"""The stand-in's settings besides its time: 256 requests in flight."""

MACHINE = ("alone_ms", "fsync_ms")
"""Figures of the machine alone."""

Figures = dict[str, Any]


def run_of(checkout: Path, *, model: str, options: Mapping[str, str], rate: float) -> Figures:
    """Return the figures of one run of the version in ``checkout``.

    Args:
        checkout: a folder with the version and its ``.venv``.
        model: ``mutation`` or ``stand-in``.
        options: of this benchmark.
        rate: children a second that the stand-in offers.

    Raises:
        UserError: the run failed; the message has the end of what it said.
    """
    own = [f"budget.candidates={options['candidates']}", "budget.seconds=null", "model=mutation"]
    if model == "stand-in":
        own = [*STAND_IN, f"budget.seconds={options['seconds']}"]
    runs = ROOT / "runs"  # on the disk, which the folder for temporary files may not be
    runs.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=runs) as folder:
        fsync_ms = 1e3 * statistics.median(fsync_seconds(Path(folder) / "fsync"))
        out = Path(folder) / "figures.json"
        request = {
            "arguments": [
                *(
                    f"problem.path={PROBLEM}",
                    f"runs={folder}",
                    "name=run",
                    f"seed={options['seed']}",
                ),
                *own,
            ],
            "model": model,
            "evaluator": options["evaluator"],
            "tokens": round(TOKENS_PER_SECOND / rate),
            "folder": f"{folder}/run",
            "out": str(out),
        }
        done = subprocess.run(
            [checkout / ".venv" / "bin" / "python", "-P", SIDE, json.dumps(request)],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout)},
            capture_output=True,
            text=True,
        )
        if done.returncode or not out.exists():
            raise UserError(f"the run in {checkout} failed:\n{done.stdout[-500:]}{done.stderr}")
        return figures_of(json.loads(out.read_text(encoding="utf-8"))) | {"fsync_ms": fsync_ms}


def fsync_seconds(path: Path) -> list[float]:
    """Return how long each of some writes to a new file takes until it is on the disk."""
    seconds = []
    with path.open("wb") as file:
        for _ in range(20):
            file.write(bytes(4096))
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            seconds.append(time.perf_counter() - began)
    return seconds


def figures_of(run: Figures) -> Figures:
    """Return the figures of a run for each of its children, and its steps over those alone."""
    share = run["children"] / run["candidates"]
    figures = {
        "children_per_second": run["candidates_per_second"] * share,
        **{key: run[key] / share for key in ("loop_ms", "decoder_ms", "other_ms")},
        "processes_ms": run["processes_ms"],
        "loop_busy": run["loop_busy"],
        "digest": run["digest"],
    }
    if "step" in run:
        figures |= {key: run["step"][key] / run["alone"][key] for key in run["step"]}
        figures["alone_ms"] = run["alone"]["work_median"]
    return figures


def compared(rounds: Sequence[Mapping[str, Figures]]) -> dict[str, Any]:
    """Return each side's figures over the rounds, and this version's over the baseline's."""
    result: dict[str, Any] = {}
    keys = [key for key in rounds[0]["now"] if key != "digest"]
    for side in rounds[0]:
        result[side] = {key: spread([each[side][key] for each in rounds]) for key in keys}
    if "baseline" in rounds[0]:
        pairs = [(each["now"], each["baseline"]) for each in rounds]
        result["ratio"] = {
            key: spread([now[key] / before[key] for now, before in pairs])
            for key in keys
            if key not in MACHINE and all(before[key] for _, before in pairs)
        }
        if "work_median" not in keys:  # the stand-in's answers depend on when they are asked for
            same = [now["digest"] == before["digest"] for now, before in pairs]
            result["same_children"] = all(same)
    return result


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    for key in ("rounds", "candidates", "seconds"):
        number(options, key)
    models = options["models"].split(",")
    if unknown := sorted(set(models) - {"mutation", "stand-in"}):
        raise UserError(f"models={unknown[0]} is neither mutation nor stand-in")
    if options["evaluator"] not in ("trivial", "real"):
        raise UserError(f"evaluator={options['evaluator']} is neither trivial nor real")
    sides = {"now": ROOT}
    if options["baseline"]:
        sides["baseline"] = Path(options["baseline"]).resolve()
        if not (sides["baseline"] / ".venv").is_dir():
            raise UserError(f"baseline={options['baseline']} has no .venv; run make environment")
    rates = [number({"rates": each}, "rates") for each in options["rates"].split(",")]
    cases = [("mutation", TOKENS_PER_SECOND)] if "mutation" in models else []
    cases += [("stand-in", rate) for rate in rates] if "stand-in" in models else []
    made: dict[tuple[str, float], list[dict[str, Figures]]] = {case: [] for case in cases}
    for turn, (model, rate) in itertools.product(range(whole_number(options, "rounds")), cases):
        order = list(sides.items())[:: -1 if turn % 2 else 1]
        made[model, rate].append({})
        for side, checkout in order:
            figures = run_of(checkout, model=model, options=options, rate=rate)
            made[model, rate][-1][side] = figures
            sys.stdout.write(f"{model} {rate:g} {side}: {json.dumps(rounded(figures))}\n")
            sys.stdout.flush()
    result: dict[str, Any] = {"options": options}
    for (model, rate), rounds in made.items():
        result[model if model == "mutation" else f"stand-in {rate:g}"] = compared(rounds)
    if "stand-in" in models:
        result["most_children_per_second"] = {
            side: max(
                each[side]["children_per_second"]["median"]
                for key, each in result.items()
                if key.startswith("stand-in")
            )
            for side in sides
        }
    sys.stdout.write(json.dumps(result) + "\n")


def rounded(figures: Figures) -> Figures:
    """Return figures to read."""
    return {
        key: round(each, 3) if isinstance(each, float) else each for key, each in figures.items()
    }


if __name__ == "__main__":
    run_as_command(main)

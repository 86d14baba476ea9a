"""Question: does a run get slower as its log grows, or hold more than its log, and when is it back?

Method: one run of ``candidates``, in a process of its own, with the log on the disk: the real loop,
decoder, syntax process, search and store with their defaults (4 islands, K = 8, operator ``diff``),
on a problem whose initial program has as many lines as the shipped ones' mostly have. The model and
the evaluators cost next to nothing, so that the rest runs at its full rate: the model answers in
one step with a diff that changes one number, so that no program grows, and a program's score is its
checksum (``bench.control_side``). Then the run is resumed ``resumes`` times, each in a fresh
process and with the real evaluators, until its next call is on disk. Reported:

- ``first_ms``, ``last_ms``: CPU ms of the process for an event, in the first thousand events behind
  ``warmup`` and in the last one, each the median of ten thousands in a row; ``ratio`` is the last
  over the first, and ``thousand_ratio`` that of the two single thousands. ``wall_ratio`` is by the
  clock, which counts what else the machine does.
- ``series``: 20 moments of the run: events, CPU ms for an event since the moment before, resident
  MB, descriptors, MB of the log and of the timeline;
- ``memory_kb``, ``log_kb``: by which the process and the log grow for a candidate;
- ``pauses``: seconds in the garbage collector, in all and the longest at once;
- ``start_seconds``: from the command that resumes to the next call on disk, and ``start_cpu``, the
  process's CPU seconds until then;
- ``held``: resident MB of the run at its end over that of a process that resumed it, which holds
  what the log says and nothing else.

The exit code is 1 if ``ratio`` is above 1.2, descriptors became more, or a start took 10 s or more.

With ``keep`` the run stays in that folder; where one is already, it is resumed and not made, and
what is known of how it was made is in the folder's ``made.json``.

Usage: python -m bench.long_run [candidates=100000] [warmup=5000] [resumes=3] [seed=0] [keep=FOLDER]
       [out=FILE]
The last line printed is JSON; ``out`` gets it too.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.figures import spread
from bench.options import read_options, run_as_command, whole_number
from engine.core import UserError

ROOT = Path(__file__).resolve().parents[1]
PROBLEM = ROOT / "bench" / "control_problem"
PROGRAM = '''\
"""Steps of a function on [0, 2] that overlaps little with its complement."""

import math

import numpy as np

SIZE = 32


def bump(size, center, spread):
    """Return a flat-topped bump in the middle of [0, 2]."""
    x = (np.arange(size) + 0.5) * 2.0 / size
    return np.exp(-((np.abs(x - center) / spread) ** 4))


def mended(heights):
    """Scale the heights, or the gaps above them, so that their mean is 0.5."""
    mean = float(np.mean(heights))
    if mean > 0.5:
        return heights * (0.5 / mean)
    return 1.0 - (1.0 - heights) * (0.5 / (1.0 - mean))


def run():
    """Return the steps."""
    scale = 0.125
    waves = [math.cos(math.pi * at / SIZE) for at in range(SIZE)]
    start = mended(bump(SIZE, 1.0, 0.6))
    return {"steps": mended(np.clip(start + scale * np.array(waves), 0.0, 1.0))}
'''
"""The initial program; the model's answers change its scale."""
SETTINGS = (
    *("model=smollm2", "model.dtype=float32", "model.max_model_len=16384"),
    *("search.operators.infill=0", "search.operators.diff=1", "fill=none"),
    *("budget.seconds=null", "budget.candidates=1000000"),
)
DEFAULTS = {"candidates": "100000", "warmup": "5000", "resumes": "3", "seed": "0"}
DEFAULTS |= {"keep": "", "out": ""}
MOST_RATIO = 1.2
MOST_START_SECONDS = 10.0
IN_A_ROW = 10
"""Thousands of events over which a median is taken."""
MOMENTS = 20
_MB = 1 << 20

Sample = Mapping[str, float]


def session(folder: Path, **request: Any) -> dict[str, Any]:
    """Return what a session of the run in ``folder`` says of itself, in a process of its own.

    Raises:
        UserError: it failed; the message has the end of what it said.
    """
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        asked = {"folder": str(folder), "out": out.name, "began": time.monotonic(), **request}
        done = subprocess.run(
            [sys.executable, "-m", "bench.long_run_side", json.dumps(asked)],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise UserError(f"the session failed:\n{done.stdout[-500:]}{done.stderr[-2000:]}")
        said: dict[str, Any] = json.loads(out.read())
        return said


def made_in(folder: Path, *, candidates: int, seed: str) -> dict[str, Any]:
    """Return what the run in ``folder`` said of itself; make it if it is not there."""
    kept = folder / "made.json"
    if not kept.exists():
        problem = Path(shutil.copytree(PROBLEM, folder / "problem"))
        (problem / "initial.py").write_text(PROGRAM, encoding="utf-8")
        own = [f"problem.path={problem}", f"runs={folder}", "name=run", f"seed={seed}"]
        made = session(folder / "run", arguments=[*SETTINGS, *own], until=candidates)
        kept.write_text(json.dumps(made), encoding="utf-8")
    said: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return said


def figures_of(samples: Sequence[Sample], *, warmup: int) -> dict[str, Any]:
    """Return the figures of a run.

    Args:
        samples: one about every thousand events, the oldest first; see ``bench.long_run_side``.
        warmup: events before the first thousand that counts.

    Raises:
        UserError: there are too few samples behind ``warmup``.
    """
    warm = [each for each in samples if each["events"] >= warmup]
    if len(warm) < 2 * IN_A_ROW + 2:
        raise UserError(f"too few events behind the first {warmup}; give more candidates")
    thousands = {name: [_each(*two, name) for two in pairwise(warm)] for name in ("cpu", "wall")}
    cpu = thousands["cpu"]
    first, last = statistics.median(cpu[:IN_A_ROW]), statistics.median(cpu[-IN_A_ROW:])
    wall = thousands["wall"]
    begin, end = warm[0], warm[-1]
    candidates = end["candidates"] - begin["candidates"]
    step = max(1, len(samples) // MOMENTS)
    return {
        "candidates": end["candidates"],
        "events": end["events"],
        "seconds": round(end["wall"] - samples[0]["wall"], 1),
        "first_ms": round(first, 3),
        "last_ms": round(last, 3),
        "ratio": round(last / first, 3),
        "thousand_ratio": round(cpu[-1] / cpu[0], 3),
        "wall_ratio": round(
            statistics.median(wall[-IN_A_ROW:]) / statistics.median(wall[:IN_A_ROW]), 3
        ),
        "memory_kb": round((end["resident"] - begin["resident"]) / candidates / 1024, 2),
        "log_kb": round((end["log"] - begin["log"]) / candidates / 1024, 2),
        "descriptors": [begin["descriptors"], end["descriptors"]],
        "series": [_moment(*two) for two in pairwise([*samples[::step], end]) if two[0] != two[1]],
    }


def _each(before: Sample, after: Sample, name: str) -> float:
    """Return the ms of an event between two samples."""
    return 1e3 * (after[name] - before[name]) / (after["events"] - before["events"])


def _moment(before: Sample, after: Sample) -> dict[str, float]:
    return {
        "events": after["events"],
        "cpu_ms": round(_each(before, after, "cpu"), 3),
        "resident_mb": round(after["resident"] / _MB, 1),
        "descriptors": after["descriptors"],
        "log_mb": round(after["log"] / _MB, 1),
        "timeline_mb": round(after["timeline"] / _MB, 1),
    }


def main(arguments: list[str]) -> int:
    """Measure, print, and return the exit code."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    candidates, warmup = whole_number(options, "candidates"), whole_number(options, "warmup")
    runs = ROOT / "runs"  # on the disk, which the folder for temporary files may not be
    runs.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=runs) as temporary:
        folder = Path(options["keep"] or temporary).absolute()
        made = made_in(folder, candidates=candidates, seed=options["seed"])
        figures = figures_of(made["samples"], warmup=warmup) | {"pauses": made["pauses"]}
        sys.stdout.write(f"run: {json.dumps(figures)}\n")
        sys.stdout.flush()
        starts = [session(folder / "run") for _ in range(whole_number(options, "resumes"))]
    resident = statistics.median(each["resident"] for each in starts)
    result = {
        **options,
        "cores": len(os.sched_getaffinity(0)),
        **figures,
        "start_seconds": spread([each["seconds"] for each in starts]),
        "start_cpu": spread([each["cpu"] for each in starts]),
        "held": round(made["samples"][-1]["resident"] / resident, 3),
    }
    result["passed"] = (
        result["ratio"] <= MOST_RATIO
        and result["descriptors"][1] <= result["descriptors"][0]
        and result["start_seconds"]["high"] < MOST_START_SECONDS
    )
    line = json.dumps(result)
    if options["out"]:
        Path(options["out"]).write_text(line + "\n", encoding="utf-8")
    sys.stdout.write(line + "\n")
    return 0 if result["passed"] else 1


if __name__ == "__main__":
    run_as_command(main)

"""Question: does evaluation leak, or ever give a wrong verdict, over many candidates?

Method: ``candidates`` programs for a copy of ``signal`` whose time limit is ``limit`` seconds, in
an order drawn from ``seed``; ``hostile`` of them are the programs of ``bench.hostile``, the others
valid filters of four kinds with a parameter drawn for each of ``variants``, whose scores are known
from bare runs (``bench.bare``). A verdict is wrong unless a valid program has its bare score, bit
for bit, and a hostile one a proper verdict.

After ``warmup`` candidates and again after the last, with nothing in flight, it looks at the
processes below this one, their open descriptors and resident memory and this process's own, the
files in the temporary folder, which is its alone. Processes, descriptors and files may not become
more, memory not by 1 % or more. Processes that look like zygotes but are not below this one, any
process left after closing the pool, and a file that a program managed to write are leaks too.
Zygotes that were replaced are counted; it is no failure.

Usage: python -m bench.soak [candidates=10000] [hostile=0.1] [workers=CORES] [warmup=500]
       [variants=500] [limit=0.3] [seed=0]
The last line printed is JSON; the exit code is 1 if anything leaked or any verdict was wrong.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import random
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import bare
from bench.hostile import HONEST, HOSTILE
from bench.machine import Resources, leaks, look, strays
from bench.options import number, read_options, run_as_command, whole_number
from engine.core import Evaluation, Failure
from engine.evaluation import EvaluatorPool, open_pool
from engine.problem import load_problem, shipped

FILTERS = (
    "np.convolve(x, np.exp(np.linspace(-{p}, 0, w)), 'valid') / w",
    "ndimage.gaussian_filter1d(x, 20 * {p})[w - 1 :]",
    "signal.lfilter([{p} / 4], [1, {p} / 4 - 1], x)[w - 1 :]",
    "x[w - 1 :] * {p} / 4",
)
PROGRAM = """\
import numpy as np
from scipy import ndimage, signal


def run_signal_processing(noisy_signal, window_size=20):
    x, w = noisy_signal, window_size
    return {{"filtered_signal": {expression}}}
"""
IN_FLIGHT = 4  # candidates for each worker
REPORTS = 10
SHOWN = 20  # wrong verdicts in full


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A program, and the verdicts that are right: failures, or None with exactly this score."""

    name: str
    program: str
    proper: frozenset[Failure | None]
    score: float | None

    def accepts(self, evaluation: Evaluation) -> bool:
        """Return whether ``evaluation`` is a right verdict."""
        if evaluation.failure is None:
            return None in self.proper and evaluation.score == self.score
        return evaluation.failure in self.proper


def valid_programs(count: int, *, seed: int) -> list[str]:
    """Return ``count`` different valid programs, always the same for one seed."""
    rng = random.Random(f"programs of {seed}")
    return [
        PROGRAM.format(expression=FILTERS[i % len(FILTERS)].format(p=rng.uniform(0.1, 4)))
        for i in range(count)
    ]


def prepare(folder: Path, *, limit: float) -> Path:
    """Copy the ``signal`` problem into ``folder`` with another time limit; return the copy."""
    copy = Path(shutil.copytree(shipped()["signal"], folder / "signal_soak"))
    declaration = copy / "problem.yaml"
    text, count = re.subn(r"(?m)^  seconds: .*$", f"  seconds: {limit:g}", declaration.read_text())
    assert count == 1
    declaration.write_text(text)
    return copy


def draw(given: list[Given], hostile: list[Given], *, share: float, seed: int) -> Iterator[Given]:
    """Yield candidates for ever: of each 100 in a row, ``share`` of them hostile ones."""
    rng = random.Random(f"order of {seed}")
    while True:
        bad = round(100 * share)
        block = rng.choices(hostile, k=bad) + rng.choices(given, k=100 - bad)
        rng.shuffle(block)
        yield from block


class Soak:
    """Feeds a pool and counts what comes back."""

    def __init__(self, pool: EvaluatorPool, candidates: Iterator[Given], *, workers: int) -> None:
        self._pool = pool
        self._candidates = candidates
        self._most = IN_FLIGHT * workers
        self._out: dict[str, Given] = {}
        self._submitted = 0
        self.done = 0
        self.verdicts: Counter[str] = Counter()
        self.wrong_count = 0
        self.wrong: list[dict[str, Any]] = []

    def run(self, count: int) -> None:
        """Have ``count`` candidates evaluated, and wait for the last verdict."""
        last = self._submitted + count
        while self._submitted < last or self._out:
            while self._submitted < last and len(self._out) < self._most:
                name = str(self._submitted)
                self._submitted += 1
                self._out[name] = next(self._candidates)
                self._pool.submit(candidate_id=name, program=self._out[name].program)
            for name, evaluation in self._pool.completed(timeout=None):
                self._judge(self._out.pop(name), evaluation)

    def _judge(self, given: Given, evaluation: Evaluation) -> None:
        self.done += 1
        self.verdicts[evaluation.failure or "valid"] += 1
        if given.accepts(evaluation):
            return
        self.wrong_count += 1
        if len(self.wrong) < SHOWN:
            self.wrong.append(
                {
                    "program": given.name,
                    "expected": sorted(each or f"score {given.score}" for each in given.proper),
                    "verdict": evaluation.failure or f"score {evaluation.score}",
                    "message": evaluation.message,
                }
            )


def soak(options: dict[str, str], folder: Path) -> dict[str, Any]:
    """Run everything below ``folder``; return the figures, ``passed`` among them."""
    seed, workers = whole_number(options, "seed", least=0), whole_number(options, "workers")
    count, warmup = whole_number(options, "candidates"), whole_number(options, "warmup")
    problem = load_problem(prepare(folder, limit=number(options, "limit")))
    escapes = folder / "escapes"
    escapes.mkdir()
    given, hostile = _given(problem.folder, escapes, whole_number(options, "variants"), seed)
    order = draw(given, hostile, share=float(options["hostile"]), seed=seed)
    began = time.monotonic()
    with open_pool(problem=problem, workers=workers) as pool:
        run = Soak(pool, order, workers=workers)
        run.run(warmup)
        before = _settled(folder)
        print(f"warm after {run.done}: {before.summary()}", flush=True)
        for part in range(REPORTS):
            run.run((count - warmup) * (part + 1) // REPORTS - (run.done - warmup))
            print(
                f"{run.done} of {count}, {time.monotonic() - began:.0f} s, {run.wrong_count} wrong",
                flush=True,
            )
        after = _settled(folder)
        found = leaks(before, after) + strays(after)
    seconds = time.monotonic() - began
    closed = _settled(folder)
    if closed.processes:
        found.append(f"{len(closed.processes)} processes are left after closing")
    found += [
        f"{name} was written from inside"
        for name in sorted(path.name for path in escapes.iterdir())
    ]
    return {
        "candidates": run.done,
        "seconds": round(seconds, 1),
        "per_second": round(run.done / seconds, 1),
        "verdicts": dict(run.verdicts.most_common()),
        "wrong_verdicts": run.wrong_count,
        "wrong": run.wrong,
        "before": before.summary(),
        "after": after.summary(),
        "zygotes_replaced": len(set(after.processes) - set(before.processes)),
        "leaks": found,
        "passed": not found and not run.wrong_count,
    }


def _given(
    problem: Path, escapes: Path, variants: int, seed: int
) -> tuple[list[Given], list[Given]]:
    programs = valid_programs(variants, seed=seed)
    with bare.start(problem) as process:
        scores = process.ask(programs=[*programs, HONEST])["scores"]
    valid = [
        Given(name="valid", program=program, proper=frozenset({None}), score=score)
        for program, score in zip(programs, scores[:-1], strict=True)
    ]
    hostile = [
        Given(
            name=each.name,
            program=each.program(str(escapes)),
            proper=each.proper,
            score=scores[-1],
        )
        for each in HOSTILE
    ]
    return valid, hostile


def _settled(folder: Path) -> Resources:
    """Look at the resources when what was just ended had its time to end."""
    gc.collect()
    time.sleep(1.0)
    return look(folder)


def main(arguments: list[str]) -> int:
    """Run the soak, print, and return the exit code."""
    cores = len(os.sched_getaffinity(0))
    defaults = {"candidates": "10000", "hostile": "0.1", "workers": str(cores), "warmup": "500"}
    defaults |= {"variants": "500", "limit": "0.3", "seed": "0"}
    options = read_options(arguments, defaults, usage=__doc__ or "")
    with tempfile.TemporaryDirectory(prefix="brood-soak-") as folder:
        tempfile.tempdir = folder  # the pool's folders too, so that nobody else's files count
        try:
            result = soak(options, Path(folder))
        finally:
            tempfile.tempdir = None
    print(json.dumps(result))
    return 0 if result["passed"] else 1


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run_as_command(main)

"""Does malformed or forged input crash, hang or deceive what reads it?

    python -m bench.fuzz                              # a million inputs
    python -m bench.fuzz inputs=20000 seed=3
    python -m bench.fuzz target=values inputs=1000
    python -m bench.fuzz target=values input=4711     # one again, with its traceback

Method. Each target is one reader: of what candidates send, or of files that others wrote. Its
inputs are real samples that were changed as bytes, as text or as JSON values; input n follows from
the seed, the target and n. Each target gets a hundredth of all inputs, and those that take
microseconds share the rest. They are read in a process of their own, so that a segmentation fault
or a hang is seen; reading goes on behind the input that did it. An input is

- accepted: taken. What crosses the wire from a candidate must be just what a second decoding says,
  or be equal after another crossing (`bench/fuzz/reference.py`);
- refused: by the error that the reader's contract names;
- a crash: any other exception, or the death of the process; memory beyond 3 GiB is one too;
- a hang: not read within ``seconds``, 120 unless given;
- wrong: taken for something else than it is.

Prints the findings, and last a JSON object with the counts of each target. Exit code 1 if anything
was found, else 0. Does not cover the walls: ``tests/evaluation``.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.fuzz.hunt import Found, hunt
from bench.fuzz.targets import TARGETS
from bench.fuzz.worker import rng_of
from bench.options import number, read_options, run_as_command
from engine.core import UserError

_DEFAULTS = {"inputs": "1000000", "seed": "0", "target": "", "input": "", "seconds": "120"}
_LEAST = 100  # of all inputs, each target gets one in so many


def shares(inputs: int, names: Sequence[str]) -> dict[str, int]:
    """Return how many inputs each target gets."""
    least = max(1, inputs // _LEAST)
    rest, total = inputs - least * len(names), sum(TARGETS[name].share for name in names)
    return {
        name: least + (max(0, rest) * TARGETS[name].share // total if total else 0)
        for name in names
    }


def again(name: str, *, seed: int, at: int) -> None:
    """Read one input in this process, and print it first."""
    with tempfile.TemporaryDirectory() as folder:
        target = TARGETS[name](Path(folder))
        given = target.draw(rng_of(seed=seed, target=name, number=at))
        sys.stdout.write(f"{given!r}\n")
        try:
            target.feed(given)
            sys.stdout.write("accepted\n")
        except target.refusals as error:
            sys.stdout.write(f"refused: {type(error).__name__}: {error}\n")
        finally:
            target.close()


def main(arguments: Sequence[str]) -> int:
    """Do as ``arguments`` say; return the exit code."""
    options = read_options(arguments, _DEFAULTS, usage=__doc__ or "")
    if options["target"] and options["target"] not in TARGETS:
        raise UserError(f"there is no target {options['target']!r}; valid: {', '.join(TARGETS)}")
    names = [options["target"]] if options["target"] else list(TARGETS)
    seed, began = int(options["seed"]), time.monotonic()
    if options["input"]:
        again(names[0], seed=seed, at=int(options["input"]))
        return 0
    every = {names[0]: int(options["inputs"])}
    if not options["target"]:
        every = shares(int(options["inputs"]), names)
    found: dict[str, Found] = {}
    for name, count in every.items():
        hang_seconds = number(options, "seconds")
        one = found[name] = hunt(name, seed=seed, first=0, inputs=count, hang_seconds=hang_seconds)
        for each in one.findings[:20]:
            sys.stdout.write(f"{json.dumps(each)}\n")
        said = f"{one.accepted} accepted, {one.refused} refused, {one.crashes} crashes, "
        said += f"{one.hangs} hangs, {one.wrong} wrong in {one.seconds:.0f} s"
        sys.stdout.write(f"{name}: {one.inputs} inputs, {said}\n")
        sys.stdout.flush()
    totals = {
        key: sum(getattr(each, key) for each in found.values())
        for key in ("inputs", "accepted", "refused", "crashes", "hangs", "wrong")
    }
    targets = {
        name: {"reads": TARGETS[name].reads, **_rounded(dataclasses.asdict(each))}
        for name, each in found.items()
    }
    seconds = round(time.monotonic() - began, 1)
    result = {"seed": seed, **totals, "seconds": seconds, "targets": targets}
    sys.stdout.write(f"{json.dumps(result)}\n")
    return int(any(totals[key] for key in ("crashes", "hangs", "wrong")))


def _rounded(counts: dict[str, object]) -> dict[str, object]:
    del counts["findings"]
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in counts.items()}


if __name__ == "__main__":
    run_as_command(main)

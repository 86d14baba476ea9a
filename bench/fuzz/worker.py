"""``python -m bench.fuzz.worker TARGET SEED FIRST LAST FOLDER PROGRESS FINDINGS``: feed one target.

Input n of a target follows from the seed, the target and n alone. What becomes of the inputs is
counted in the file PROGRESS as it happens, and what is wrong is a line of FINDINGS, so nothing is
lost when the process dies of an input, or is killed because it hangs at one.
"""

from __future__ import annotations

import importlib
import json
import logging
import mmap
import resource
import struct
import sys
import time
import traceback
import warnings
from pathlib import Path
from random import Random
from typing import Self

import engine
from bench.fuzz.target import Target, WrongError

_MOST_BYTES = 3 << 30  # of memory that inputs may have a reader take
_ROOT = str(Path(engine.__file__).parents[1])
_LONGEST = 300  # characters of a message


class Progress:
    """A file of counters that outlives the process that counts.

    Attributes:
        began: how many processes have begun to read.
        at: the input that is read, or is read next.
        taken, refused, crashes, wrong: what became of those before.
        slowest: seconds of the slowest one.
    """

    _FORM = struct.Struct("<6Qd")

    def __init__(self, path: Path) -> None:
        """Map the file, which is made if it is not there."""
        if not path.exists():
            path.write_bytes(bytes(self._FORM.size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self.load()

    def load(self) -> Self:
        """Read the counters."""
        found = self._FORM.unpack_from(self._memory)
        self.began, self.at, self.taken, self.refused, *others = found
        self.crashes, self.wrong, self.slowest = others
        return self

    def store(self) -> None:
        """Write the counters."""
        counts = (self.began, self.at, self.taken, self.refused, self.crashes, self.wrong)
        self._FORM.pack_into(self._memory, 0, *counts, self.slowest)


def target_of(name: str) -> type[Target]:
    """Return a target by its name, or by ``MODULE:CLASS``."""
    module, _, kind = name.partition(":")
    if kind:
        found: type[Target] = getattr(importlib.import_module(module), kind)
        return found
    from bench.fuzz.targets import TARGETS

    return TARGETS[name]


def rng_of(*, seed: int, target: str, number: int) -> Random:
    """Return the random numbers that an input is drawn with."""
    return Random(f"{seed}/{target}/{number}")


def feed(
    target: Target, *, seed: int, first: int, last: int, progress: Progress, findings: Path
) -> None:
    """Have the inputs ``first`` to ``last - 1`` read."""
    progress.began += 1
    for number in range(first, last):
        progress.at = number
        progress.store()
        given = target.draw(rng_of(seed=seed, target=target.name, number=number))
        began = time.perf_counter()
        try:
            target.feed(given)
            progress.taken += 1
        except target.refusals:
            progress.refused += 1
        except WrongError as error:
            progress.wrong += 1
            _note(findings, target, number, error)
        except Exception as error:
            progress.crashes += 1
            _note(findings, target, number, error)
        progress.slowest = max(progress.slowest, time.perf_counter() - began)
    progress.at = last
    progress.store()


def _note(findings: Path, target: Target, number: int, error: BaseException) -> None:
    steps = [
        f"{Path(frame.f_code.co_filename).relative_to(_ROOT)}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename.startswith(f"{_ROOT}/engine/")
    ]
    said = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
    found = {
        "target": target.name,
        "input": number,
        "what": "wrong" if isinstance(error, WrongError) else "crash",
        "said": said,
        "where": steps[-1] if steps else "",
    }
    with findings.open("a") as file:
        file.write(json.dumps(found) + "\n")


def main(
    name: str, seed: int, first: int, last: int, folder: Path, counted: Path, noted: Path
) -> None:
    """Do as the module says."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    target = target_of(name)(folder)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _MOST_BYTES, hard))
    try:
        feed(
            target,
            seed=seed,
            first=first,
            last=last,
            progress=Progress(counted),
            findings=noted,
        )
    finally:
        target.close()


if __name__ == "__main__":
    _target, *_numbers = sys.argv[1:5]
    main(_target, *map(int, _numbers), *map(Path, sys.argv[5:8]))

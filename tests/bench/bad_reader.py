"""A target of the bench that fuzzes with all faults that a reader may have."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path
from random import Random

from bench.fuzz.target import Target, WrongError
from engine.core import UserError

WAYS = ("take", "refuse", "die", "hang", "raise", "mistake", "memory")


class BadReader(Target):
    """Reads the name of a fault, and has it."""

    name = "bad"
    reads = "nothing"

    def __init__(self, folder: Path) -> None:
        return

    def draw(self, rng: Random) -> str:
        return rng.choice(WAYS)

    def feed(self, given: str) -> None:
        if given == "refuse":
            raise UserError("no")
        if given == "die":
            ctypes.string_at(0)
        if given == "hang":
            time.sleep(1000)
        if given == "raise":
            raise KeyError(given)
        if given == "mistake":
            raise WrongError("it is something else")
        if given == "memory":
            bytearray(1 << 40)


class Unmade(BadReader):
    """Can't be made."""

    def __init__(self, folder: Path) -> None:
        raise ValueError("it can't be made")

"""What a reader is to the bench: where its inputs come from, and what it may do with them."""

from __future__ import annotations

import abc
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from engine.core import UserError


class WrongError(Exception):
    """A reader took an input for something else than it is."""


class Target(abc.ABC):
    """One reader. It is made, fed and closed in a worker's process.

    Attributes:
        name: of the target, in results and on the command line.
        reads: the reader's place in the code.
        refusals: what it may raise for bad input. Anything else that it raises is a crash.
        share: its part of the inputs beyond those that each target gets.
    """

    name: ClassVar[str]
    reads: ClassVar[str]
    refusals: ClassVar[tuple[type[BaseException], ...]] = (UserError,)
    share: ClassVar[int] = 0

    @abc.abstractmethod
    def __init__(self, folder: Path) -> None:
        """Make what is needed once; ``folder`` is empty, and the target's alone."""

    @abc.abstractmethod
    def draw(self, rng: Random) -> Any:
        """Return an input, which follows from the random numbers alone."""

    @abc.abstractmethod
    def feed(self, given: Any) -> None:
        """Have an input read; return if it was taken.

        Raises:
            WrongError: it was taken for something else than it is.
            Exception: one of ``refusals``, if it was refused; any other is a crash.
        """

    def close(self) -> None:
        """Let go of what was made."""
        return

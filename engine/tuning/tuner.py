"""CMA-ES over the constants of one program, as questions and answers.

Covariance matrix adaptation (Hansen and Ostermeier, 2001) with the margin for whole numbers of
Hamano et al. (2022), from the package ``cmaes``. What is asked depends on the seed and on the
answers alone, in whatever order these come.

Does not cover which numbers are constants (``constants.py``), or running programs.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.core import Direction
from engine.tuning.constants import Constant, constants_of, with_values

if TYPE_CHECKING:
    from cmaes import CMAwM

MOST_CONSTANTS = 64
"""Of a program that is tuned; its first ones. CMA-ES needs some hundred answers for each."""
_SIGMA = 0.3
"""Of the first generation. It is halved as long as no sample of it has a score: near a program
whose parts only just fit, most others fail, and failures alone say nothing of the way."""
_SMALLEST_SIGMA = 1e-4
_PROBE = 1e-3
"""How far a float is moved by itself, to see whether it may be."""
_REACH = 40.0  # of a coordinate, either way; floats overflow no earlier than that
_FAR = 1e3  # how much larger or smaller than its size a whole number may become
_LARGE = 1e12  # no whole number that is tuned has a larger unit; a float may
_WORST = 1e300  # of what CMA-ES is told; infinities have no mean


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A program that a tuner asks about.

    Attributes:
        number: counts the tuner's samples from 0.
        program: its text.
    """

    number: int
    program: str


def import_cma() -> None:
    """Import CMA-ES, and all of ``scipy.stats`` with it: half a second, at a time that suits."""
    import_module("cmaes")


class Tuner:
    """Moves the constants of one program; see the module.

    A coordinate is a constant's distance from where it began. Of a float it is in units that are a
    tenth of the float near zero and grow with it, so that scales are found as well as shifts and
    signs; of a whole number, in units of a quarter of it, or of 1.

    Where a whole first generation fails, each constant is moved a little by itself. One that makes
    the program fail even so stays as it is from there on: a size that others have to fit, or a
    number that a tolerance pins.
    """

    def __init__(
        self, program: str, *, direction: Direction, seed: int, entry: str | None = None
    ) -> None:
        """Begin at a program.

        Args:
            program: whose constants are to be tuned.
            direction: of the scores.
            seed: of all chance.
            entry: the function that is called; None where that is not known.

        Raises:
            ValueError: it has no constants.
        """
        self._program = program
        self._direction = direction
        self.constants: Sequence[Constant] = constants_of(program, entry=entry)[:MOST_CONSTANTS]
        if not self.constants:
            raise ValueError("the program has no constant to tune")
        units = np.array([_unit(each.value) for each in self.constants])
        is_whole = np.array([isinstance(each.value, int) for each in self.constants])
        whole = np.minimum(units, _LARGE)
        reach = np.where(is_whole, np.round(_FAR * whole) / whole, _REACH)
        self._units = units
        self._steps = np.where(is_whole, 1.0 / units, 0.0)
        self._bounds = np.stack([-reach, reach], axis=1)
        self._seed = seed
        self._sigma = _SIGMA
        # Places of those that are moved.
        self._movable: NDArray[np.intp] = np.arange(len(self.constants))
        self._cma = self._begun()
        self._has_begun = False  # some sample has a score
        self._probes: bool | None = None  # whether this generation does; None before one has
        self._asked = 0
        self._first = 0  # number of the generation's first sample
        self._raw: list[NDArray[np.float64]] = []  # of the generation, in its order
        self._waiting: deque[Sample] = deque()
        self._scores: dict[int, float | None] = {}

    @property
    def origin(self) -> str:
        """The program that the tuner began with, as a sample that is the same is written."""
        return with_values(self._program, self.constants, [each.value for each in self.constants])

    @property
    def is_over(self) -> bool:
        """Whether CMA-ES has converged, so that nothing more is asked."""
        if not self.is_between or self._probes:
            return False
        return self._sigma < _SMALLEST_SIGMA or bool(self._cma.should_stop())

    @property
    def is_between(self) -> bool:
        """Whether all answers to a generation are in, and the next one is not begun."""
        return not self._raw

    def ask(self) -> Sample | None:
        """Return the next program; None while a generation's last answers are out, or at the end.

        A program may be asked twice, and may be the one that the tuner began with.
        """
        if not self._waiting and not self._raw and not self.is_over:
            self._begin_generation()
        return self._waiting.popleft() if self._waiting else None

    def tell(self, number: int, score: float | None) -> None:
        """Take an answer.

        Args:
            number: of the sample.
            score: None if the program has none.

        Raises:
            ValueError: no such sample is out.
        """
        if not self._first <= number < self._asked or number in self._scores:
            raise ValueError(f"no sample {number} is out")
        self._scores[number] = score
        if len(self._scores) == len(self._raw):
            scores = [self._scores[self._first + i] for i in range(len(self._raw))]
            self._end_generation(scores)
            self._raw.clear()
            self._scores.clear()

    def _end_generation(self, scores: Sequence[float | None]) -> None:
        """Learn from a generation's scores, in the order of its samples."""
        if self._probes:
            self._probes = False
            self._movable = np.flatnonzero([each is not None for each in scores])
            if self._movable.size == len(scores):
                self._sigma /= 2  # it is all of them together that may not be moved so far
            if self._movable.size:
                self._cma = self._begun()
            else:
                self._sigma = 0.0  # nothing may be moved
        elif self._has_begun or any(each is not None for each in scores):
            self._has_begun = True
            self._cma.tell([*zip(self._raw, map(self._loss, scores), strict=True)])
        elif self._probes is None:
            self._probes = True
        else:
            self._sigma /= 2
            self._cma = self._begun()

    def _begun(self) -> "CMAwM":
        """Return CMA-ES at the program that the tuner began with."""
        from cmaes import CMAwM  # see `import_cma`

        return CMAwM(
            mean=np.zeros(self._movable.size),
            sigma=self._sigma,
            bounds=self._bounds[self._movable],
            steps=self._steps[self._movable],
            seed=self._seed,
        )

    def _begin_generation(self) -> None:
        self._first = self._asked
        if self._probes:
            for alone in np.diag(np.maximum(self._steps, _PROBE)):
                self._draw(alone, raw=alone)
            return
        for _ in range(self._cma.population_size):
            encoded, raw = self._cma.ask()
            moved = np.zeros(len(self.constants))
            moved[self._movable] = encoded
            self._draw(moved, raw=raw)

    def _draw(self, coordinates: NDArray[np.float64], *, raw: NDArray[np.float64]) -> None:
        """Have a sample asked, whose constants have these coordinates."""
        values = [*map(_moved, self.constants, self._units.tolist(), coordinates.tolist())]
        program = with_values(self._program, self.constants, values)
        self._raw.append(raw)
        self._waiting.append(Sample(number=self._asked, program=program))
        self._asked += 1

    def _loss(self, score: float | None) -> float:
        if score is None or not math.isfinite(score):
            return _WORST
        return min(self._direction.key(score), _WORST / 2)  # any score is better than none


def _unit(value: int | float) -> float:
    """Return how far a step of 1 moves a constant that is near where it began."""
    if isinstance(value, int):
        return max(1.0, abs(value) / 4)
    return abs(value) / 10 or 0.1


def _moved(constant: Constant, unit: float, coordinate: float) -> int | float:
    value = constant.value
    if isinstance(value, int):
        return value + round(unit * coordinate)
    moved = unit * math.sinh(math.asinh(value / unit) + coordinate)
    return moved if math.isfinite(moved) else value

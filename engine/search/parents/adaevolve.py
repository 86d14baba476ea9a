"""AdaEvolve: explore while an island stagnates, exploit while it improves.

Source: Cemri et al., "AdaEvolve: adaptive LLM driven zeroth-order optimization", 2026, local
adaptation, and its code. With delta the relative improvement of a child, which is

    min(1, (score - best) / (|best| + 1e-8))

if it is better than the best of its island, 1 if there was none, and else 0, an island accumulates

    G <- rho G + (1 - rho) delta^2,                              rho = 0.9,      (1)

and explores with the intensity

    I = Imin + (Imax - Imin) / (1 + sqrt(G + 1e-8)),             I in [0.15, 0.5].   (2)

With u uniform on [0, 1): it explores if u < I; exploits if u < I + 0.7 (1 - I), which is a uniform
choice among the top quarter; and else is balanced, which is an even chance of exploring or of a
uniform choice among the top fifth, of ten at most. A top is never empty. The rules are called
``explore``, ``exploit`` and ``balanced``.

Where this differs from its code:

- There (1) is computed only when a program improves, so G never decays while an island stagnates,
  and the search goes on exploiting. Here it is computed for every evaluated child, with
  delta = 0 for one that improves nothing or has no score. The initial program and other migrants
  count, as there, when they are the island's new best.
- To explore is to choose by novelty. There that is the mean distance to the five nearest in an
  archive of 20, by tokens and structure. An island here has no bound, so the distances between all
  its programs would be too many. A program's novelty is the share of the others that lack a line
  of it, averaged over its lines, which takes one look at each line. The floor of 0.001 is theirs.

Covers: one island. Does not cover the paper's choice between islands, or what it tells the model of
its mode.
"""

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from engine.core import Candidate, Direction
from engine.search.parents import PARENTS, Draw, ParentOutcome, ParentPolicy, ParentSettings
from engine.search.race import winner
from engine.search.roster import best_few, hashes_of
from engine.section import Number, Share, require, section

EXPLOIT_SHARE = 0.7
"""Share of the choices that do not explore which exploit; the others are balanced."""
MOST_BALANCED = 10
"""Candidates that a balanced choice is among, at most, unless it explores."""
LEAST_NOVELTY = 0.001
_EPSILON = 1e-8


@PARENTS.register("adaevolve")
@section
class AdaEvolveSettings(ParentSettings):
    """How fast improvements are forgotten, and how often a search explores.

    Attributes:
        decay: rho, from 0 to below 1.
        intensity_min: Imin, how often a search explores that improves without end.
        intensity_max: Imax, how often one that does not improve at all; at most 1.
    """

    decay: Number = Field(default=0.9, ge=0, lt=1)
    intensity_min: Share = 0.15
    intensity_max: Share = 0.5

    @model_validator(mode="after")
    def _intensities_ascend(self) -> Self:
        least, most = self.intensity_min, self.intensity_max
        must_be = f"at least search.parent.intensity_min ({least})"
        require(least <= most, "intensity_max", most, must_be)
        return self

    def make(self, *, direction: Direction) -> "AdaEvolve":
        """Return the policy of an island without a program."""
        return AdaEvolve(self, direction=direction)


class AdaEvolve(ParentPolicy):
    """Exploring, exploiting and balanced choices, as often as the island's progress suggests."""

    def __init__(self, settings: AdaEvolveSettings, *, direction: Direction) -> None:
        """Start with G = 0; ``direction`` is that of the scores."""
        self._direction = direction
        self._decay = settings.decay
        self._min = settings.intensity_min
        self._max = settings.intensity_max
        self._novelty = Novelty()
        self._best: float | None = None
        self.accumulated = 0.0
        """G, from 0 to 1."""

    @property
    def intensity(self) -> float:
        """I, the probability of exploring, but for the balanced choices."""
        return self._min + (self._max - self._min) / (1 + math.sqrt(self.accumulated + _EPSILON))

    def choose(self, candidates: Sequence[Candidate], *, u: float, key: int) -> Draw:
        """Choose one of ``candidates``, at least one; ``u`` says whether it explores."""
        explore = self.intensity
        exploit = explore + EXPLOIT_SHARE * (1 - explore)
        rule = "explore" if u < explore else "exploit" if u < exploit else "balanced"
        if u < explore or u >= (exploit + 1) / 2:  # the rest is balanced: half and half
            log_weights = np.log(np.maximum(LEAST_NOVELTY, self._novelty.of(candidates)))
        else:
            size = len(candidates)
            count = size // 4 if u < exploit else min(MOST_BALANCED, size // 5)
            candidates = best_few(candidates, max(1, count), self._direction)
            log_weights = np.zeros(len(candidates))
        place = winner(hashes_of(candidates), log_weights, key=key)
        return Draw(candidate=candidates[place], rule=rule)

    def receive(self, candidate: Candidate) -> None:
        """Take in a migrant, which counts if it is the island's new best."""
        if self._best is None or self._direction.better(candidate.score, self._best):
            self._accumulate(candidate.score)

    def tell(self, outcome: ParentOutcome) -> None:
        """Accumulate the improvement of each child, in the order of their places."""
        for child in outcome.children:
            self._accumulate(child.score)

    def _accumulate(self, score: float | None) -> None:
        best, delta = self._best, 0.0
        if score is not None and (best is None or self._direction.better(score, best)):
            delta = 1.0 if best is None else min(1.0, abs(score - best) / (abs(best) + _EPSILON))
            self._best = score
        self.accumulated = self._decay * self.accumulated + (1 - self._decay) * delta**2  # (1)


class Novelty:
    """How unlike the others programs are; a number for each of their lines is kept."""

    def __init__(self) -> None:
        """Begin without a program."""
        self._numbers: dict[str, int] = {}  # of lines
        self._lines: dict[str, NDArray[np.int32]] = {}  # of programs, by their texts

    def of(self, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        """Return how unlike the others each program is, from 0 to 1, shape (len(candidates),).

        It is the share of the other programs that lack a line of this one, averaged over its
        distinct lines without indentation; 0 for one without a line, or without others.
        """
        lines = [self._lines_of(each.program) for each in candidates]
        shares, others = np.zeros(len(lines)), len(lines) - 1
        if others == 0:
            return shares
        sizes = np.array([own.size for own in lines])
        ends = np.cumsum(sizes)
        together = np.concatenate(lines)
        holders = np.bincount(together)  # of each line
        sums = np.concatenate([[0], np.cumsum(holders[together])])
        has = sizes > 0
        shared = (sums[ends] - sums[ends - sizes])[has] / sizes[has] - 1
        shares[has] = 1 - shared / others
        return shares

    def _lines_of(self, program: str) -> NDArray[np.int32]:
        found = self._lines.get(program)
        if found is None:
            lines = {line.strip() for line in program.splitlines()} - {""}
            numbers = (self._numbers.setdefault(line, len(self._numbers)) for line in lines)
            found = self._lines[program] = np.fromiter(numbers, np.int32)
        return found

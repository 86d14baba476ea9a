"""The contract of the mixes of operators: which one makes the next change on an island.

A mix belongs to one island. It is a fold over the calls that began and what became of them, in the
order of the log, and chance comes from the key of a choice alone. So a mix that is told a log again
chooses as the one that wrote it.

A draw is a race (``engine.search.race``), so that an operator that can't be used yet changes the
draw only where it would have won.

Covers: the interface, and a draw by weight. Does not cover any mix, or which operators can be used:
``engine.search.chooser``.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.registry import Policies, Policy
from engine.search.race import hashes_of, winner
from engine.section import section


class Mix:
    """Which operator each call of one island uses."""

    def choose(self, names: Sequence[str], *, key: int, begun: Sequence[str] = ()) -> str:
        """Return one of ``names``, given what was told; asking again changes nothing.

        Args:
            names: of the operators that can be used now, at least one.
            key: of the draw, from 0 to 2^64 - 1.
            begun: the operators of calls that began and were not told.
        """
        raise NotImplementedError

    def begin(self, iteration: int, operator: str) -> None:
        """Take in that a call is made with an operator.

        A mix that has no method of its own learns nothing from it.
        """

    def tell(self, iteration: int, *, share: float) -> None:
        """Take in what became of a call.

        A mix that has no method of its own learns nothing from it.

        Args:
            iteration: of the call.
            share: of its children that are better than their parent, from 0 to 1.
        """


@section
class MixSettings(Policy):
    """A mix as it is configured, under ``search.mix``."""

    def make(self, *, weights: Mapping[str, float]) -> Mix:
        """Return the mix of an island that was told nothing.

        Args:
            weights: of the operators, all above 0.
        """
        raise NotImplementedError


MIXES = Policies(MixSettings, package=__package__, group="brood.mixes")


def drawn(names: Sequence[str], weights: Mapping[str, float], *, key: int) -> str:
    """Return one of ``names``, drawn in proportion to its weight."""
    return names[winner(hashes_of(names), np.log([weights[name] for name in names]), key=key)]

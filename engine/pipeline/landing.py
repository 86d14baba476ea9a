"""What a completion makes: which children of its call, and what was read of each.

Mostly that is one child. An answer that lists several programs (`Prompt.at_once`) makes a child of
each, and an answer that nothing follows makes all children that are left: those that it holds no
program for are absent. Where an answer has fewer than `FEWEST` programs, and children are left, the
model is asked once more, with the call's next seed.

Covers: the rules by which children and programs come together. Does not cover whether a program is
worth an evaluation (``reader.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core import Generation, Parsed

FEWEST = 2
"""Programs below which an answer that was to list several is asked for again. TurboEvolve (section
3.1, footnote 2) accepts fewer than K and asks again below "a small minimum", which it does not
give; a single program is what a call of one child brings, and no set to choose from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Landing:
    """A completion that is back.

    Attributes:
        generation: as the model gave it.
        parsed: what the operator read in it.
        first: index of the child that the first of those is.
        children: indices of the children that it makes, at least one. Those of them that `parsed`
            does not reach are absent; programs that it reaches beyond them were recorded before.
    """

    generation: Generation
    parsed: Sequence[Parsed]
    first: int
    children: tuple[int, ...]

    def child(self, index: int) -> Parsed | None:
        """Return what was read of a child; None if it is absent."""
        rank = index - self.first
        return self.parsed[rank] if rank < len(self.parsed) else None


def allot(
    free: Sequence[int], *, first: int, programs: int, may_ask_again: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the children that an answer makes, and those that another answer is to make.

    An answer makes one child at least, so that what it cost is recorded with that.

    Args:
        free: indices of the children that no answer made, in their order.
        first: index of the child that the answer's first program is.
        programs: that the answer holds.
        may_ask_again: whether there may be another answer.
    """
    own = [index for index in free if first <= index < first + programs] or free[:1]
    if programs < FEWEST and len(own) < len(free) and may_ask_again:
        return tuple(own), tuple(index for index in free if index not in own)
    return tuple(free), ()

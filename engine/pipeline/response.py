"""What a completion makes: which children of its call, and what was read of each.

Mostly that is one child. An answer that lists several programs (`Prompt.at_once`) makes a child of
each. The last answer makes all children that are left; a child for which it has no program is
absent. Where an answer has fewer than `FEWEST` programs, and children are left, the model is asked
once more, with the call's next seed.

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
class Response:
    """A completion that is back.

    Attributes:
        generation: as the model gave it.
        parsed: what the operator read in it.
        first: index of the child that the first program in `parsed` becomes.
        children: indices of the children that it makes, at least one. A child for which `parsed`
            has no program is absent. A program whose child is not among these is ignored, because
            that child was recorded before.
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

    An answer makes at least one child, with which its cost is recorded.

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

"""Islands that can't go on where they were given to: they are offered again, but not for ever.

What is in their way mostly passes: the worker that they come from still has the log, or the server
that has it is away. So an island is offered again after a second, and after twice as long each time
in a row. What is still in the way at the `MOST`-th time, eight minutes later, stays there.
"""

from engine.core import UserError

MOST = 10
"""Refusals of an island in a row, without a candidate that was evaluated in between."""
_AGAIN = 1.0  # seconds


class Refusals:
    """Those of all islands of a run."""

    def __init__(self) -> None:
        """Know of none yet."""
        self._last: dict[int, tuple[int, int]] = {}  # candidates, and how many in a row

    def add(self, number: int, reason: str, *, candidates: int) -> float:
        """Take in that an island was refused; return the seconds before it is offered again.

        Args:
            number: the island's.
            reason: why.
            candidates: that the island has evaluated so far.

        Raises:
            UserError: it was so often that once more would not help.
        """
        before, count = self._last.get(number, (-1, 0))
        count = count + 1 if candidates <= before else 1
        self._last[number] = max(before, candidates), count
        if count >= MOST:
            raise UserError(f"island {number} got nowhere {count} times in a row: {reason}")
        return _AGAIN * 2.0 ** (count - 1)

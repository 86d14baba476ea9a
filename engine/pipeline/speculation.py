"""Speculation: whether to begin calls on a guess of their parent, and what it has brought.

A call that is begun before the verdicts are in uses time in which the model would have waited. If
the search then chooses the guessed parent, the call is that far ahead; if not, its tokens are
wasted, and others' calls in the same batch were slowed down for them. In ``auto`` the one is
weighed against the other in seconds that were measured, and guesses are made as long as they gain
more; once they do not, one in `PROBE` is made still, because the search changes as it goes on.

Covers: the decision and its account. Does not cover which parent is guessed:
``engine.search.predictor``.
"""

from __future__ import annotations

MEMORY = 0.9
"""What is left of a gain or a waste after the next guess is judged: about ten guesses count."""
PROBE = 16
"""Of so many chances, ``auto`` takes one where guesses do not pay."""


class Speculation:
    """Decides whether to guess, and learns from what became of each guess."""

    def __init__(self, mode: str) -> None:
        """Begin with the belief that guesses pay.

        Args:
            mode: ``true``, ``false`` or ``auto``.
        """
        self._mode = mode
        self._gained = 0.0
        self._wasted = 0.0
        self._passed = 0  # chances not taken since the last guess

    def is_due(self) -> bool:
        """Whether to take this chance to guess; counts one that is passed."""
        if self._mode != "auto":
            return self._mode == "true"
        if self._gained >= self._wasted or self._passed + 1 >= PROBE:
            return True
        self._passed += 1
        return False

    def begin(self) -> None:
        """Take in that a chance was taken; one that there was no room for stays."""
        self._passed = 0

    def judge(self, *, right: bool, seconds: float) -> None:
        """Learn from a guess.

        Args:
            right: whether the search chose the guessed parent.
            seconds: for which its children had been decoded when that was known.
        """
        self._gained = MEMORY * self._gained + (seconds if right else 0.0)
        self._wasted = MEMORY * self._wasted + (0.0 if right else seconds)

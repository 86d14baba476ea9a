"""Whether to begin calls on a guess of their parent, by what guesses have gained and wasted.

A call that begins before the verdicts are in uses time in which the model would have waited. If the
search then chooses the guessed parent, that time is gained. If not, its tokens are wasted, and they
slowed down the other calls in the batch. ``auto`` weighs the measured seconds gained against those
wasted, and guesses as long as more are gained. Once that is no longer so, it makes one guess in
`PROBE`, because the search changes as it goes on.

Covers: the decision and its account. Does not cover which parent is guessed (``calls.py``).
"""

MEMORY = 0.9
"""What is left of a gain or a waste after the next guess is judged: about ten guesses count."""
PROBE = 16
"""Of so many chances, ``auto`` takes one where guesses do not pay."""


class Payoff:
    """Decides whether to guess, and learns from what became of each guess."""

    def __init__(self, mode: str) -> None:
        """Begin with the belief that guesses pay.

        Args:
            mode: ``true`` or ``auto``.
        """
        self._mode = mode
        self._gained = 0.0
        self._wasted = 0.0
        self._passed = 0  # chances not taken since the last guess

    def is_due(self) -> bool:
        """Whether to guess this time; counts the times that are passed over."""
        if self._mode != "auto":
            return True
        if self._gained >= self._wasted or self._passed + 1 >= PROBE:
            return True
        self._passed += 1
        return False

    def begin(self) -> None:
        """Take in that a guess was begun; one that had no room is due again."""
        self._passed = 0

    def judge(self, *, right: bool, seconds: float) -> None:
        """Learn from a guess.

        Args:
            right: whether the search chose the guessed parent.
            seconds: how long its children had been decoded when that was known.
        """
        self._gained = MEMORY * self._gained + (seconds if right else 0.0)
        self._wasted = MEMORY * self._wasted + (0.0 if right else seconds)

"""Whether the model has stopped trying different things.

The safest answer wins easily: a model that learns to repeat it gets steady rewards and finds
nothing. Two signs: the entropy of its tokens, and the share of new valid children.
"""

from collections import deque

_ENTROPY_SHARE = 0.3  # of the first step's; PACEvolve++ shows 1.0 to 0.4 for runs that still work
_UNIQUE_SHARE = 0.5  # of the first steps'
_FIRST = 3  # steps whose mean the later ones are compared with
_WINDOW = 4  # later steps whose mean is compared


class Collapse:
    """Watches the steps of a run."""

    def __init__(self) -> None:
        self._entropy: float | None = None
        self._first: list[float] = []
        self._latest: deque[float] = deque(maxlen=_WINDOW)

    def of_uniqueness(self, unique: float) -> str | None:
        """Take in a step's share of new valid children; return what is wrong, or None."""
        if len(self._first) < _FIRST:
            self._first.append(unique)
            return None
        self._latest.append(unique)
        least = _UNIQUE_SHARE * sum(self._first) / _FIRST
        mean = sum(self._latest) / len(self._latest)
        if len(self._latest) < _WINDOW or mean >= least:
            return None
        return f"the share of new valid children fell to {mean:.3f}, below {least:.3f}"

    def of_entropy(self, entropy: float) -> str | None:
        """Take in a step's entropy; return what is wrong, or None."""
        if self._entropy is None:
            self._entropy = entropy
        least = _ENTROPY_SHARE * self._entropy
        if entropy >= least:
            return None
        return f"the tokens' entropy fell to {entropy:.3f} nats, below {least:.3f}"

    def forgive(self) -> None:
        """Count steps anew after an adapter was taken back; the first steps' figures stay."""
        self._latest.clear()

    def state(self) -> dict[str, object]:
        """Return it as plain values."""
        return {"entropy": self._entropy, "first": self._first, "latest": list(self._latest)}

    def restore(self, state: dict[str, object]) -> None:
        """Take what `state` returned."""
        entropy, first, latest = state["entropy"], state["first"], state["latest"]
        assert (entropy is None or isinstance(entropy, float)) and isinstance(first, list)
        assert isinstance(latest, list)
        self._entropy, self._first = entropy, list(first)
        self._latest = deque(latest, maxlen=_WINDOW)

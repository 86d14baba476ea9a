"""Whether the model has stopped trying different things.

The safest answer wins easily: a model that learns to repeat it gets steady rewards and finds
nothing. Two signs: the entropy of its tokens, against the model's own at the same places (prompts,
grammars and temperatures change from step to step, and the entropy with them), and the share of new
valid children, against the first steps'.
"""

from collections import deque

_ENTROPY_SHARE = 0.3  # of the model's own; PACEvolve++ shows 1.0 to 0.4 for runs that still work
_UNIQUE_SHARE = 0.5  # of the first steps'
_FIRST = 3  # steps whose mean the later ones are compared with
_WINDOW = 4  # later steps whose mean is compared


def of_entropy(entropy: float, *, own: float) -> str | None:
    """Return what is wrong, or None; a step whose entropy is no number is taken back by itself.

    Args:
        entropy: of an adapter's tokens, in nats.
        own: the model's own at the same places.
    """
    least = _ENTROPY_SHARE * own
    if not entropy < least:
        return None
    return f"the tokens' entropy fell to {entropy:.3f} nats, below {least:.3f}"


class Collapse:
    """Watches the steps of a run."""

    def __init__(self) -> None:
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

    def forgive(self) -> None:
        """Count steps anew after an adapter was taken back; the first steps' figures stay."""
        self._latest.clear()

    def state(self) -> dict[str, object]:
        """Return it as plain values."""
        return {"first": self._first, "latest": list(self._latest)}

    def restore(self, state: dict[str, object]) -> None:
        """Take what `state` returned."""
        first, latest = state["first"], state["latest"]
        assert isinstance(first, list) and isinstance(latest, list)
        self._first, self._latest = list(first), deque(latest, maxlen=_WINDOW)

"""Whether the model has stopped trying different things.

The safest answer wins easily: a model that learns to repeat it gets steady rewards and finds
nothing. Two signs: the entropy of its tokens, against the model's own at the same places (prompts,
grammars and temperatures change from step to step, and the entropy with them), and the share of new
valid children, against the first steps'.
"""

from dataclasses import dataclass, replace

_ENTROPY_SHARE = 0.3  # of the model's own; below the 0.4 of 1.0 that PACEvolve++ tells of Max@k
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Variety:
    """Shares of new valid children in the steps of a run, as far as a later step needs them.

    It follows from the recorded steps alone, so no trainer that begins again loses any.

    Attributes:
        first: of the first steps.
        latest: of the last steps after these, without those that a collapse was laid to.
    """

    first: tuple[float, ...] = ()
    latest: tuple[float, ...] = ()

    def after(self, unique: float) -> "Variety":
        """Return it with the share of one more step."""
        if len(self.first) < _FIRST:
            return replace(self, first=(*self.first, unique))
        return replace(self, latest=(*self.latest, unique)[-_WINDOW:])

    def forgiven(self) -> "Variety":
        """Return it for after a collapse: steps count anew; the first steps' shares stay."""
        return replace(self, latest=())

    @property
    def fault(self) -> str | None:
        """What is wrong, or None."""
        if len(self.latest) < _WINDOW:
            return None
        least = _UNIQUE_SHARE * sum(self.first) / _FIRST
        mean = sum(self.latest) / len(self.latest)
        if mean >= least:
            return None
        return f"the share of new valid children fell to {mean:.3f}, below {least:.3f}"

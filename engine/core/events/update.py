"""A step of training."""

from dataclasses import dataclass

from engine.core.events.event import RecordedEvent, Tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class Update(RecordedEvent):
    """A step of training is over, and its adapter is on disk. Subject: its number.

    A figure that is not finite, which a step that was rolled back may have, is recorded as 0.

    Attributes:
        number: steps before this one, plus 1. With a cluster, a step is in the log of each island
            that took its version over, and not every step is in every log.
        version: of the adapter that calls begin with from now on: the step's number, or that of an
            earlier one if the step was skipped or rolled back.
        groups: iterations of the calls in this log that it learned from.
        stale: how many groups were left out before it: they lagged too far, or too many waited.
        progress: share of the budget that was spent when it began, from 0 to 1.
        skipped: why nothing was learned; None for a step that learned.
        rolled_back: why the adapter is an earlier one; None for a step that stands.
        reward: mean over the children.
        spread: mean over the groups of the standard deviation of the advantages.
        entropy: mean over the tokens of the entropy, in nats, of what they were drawn from.
        gradient_norm: before it was clipped.
        clip_share: share of the tokens whose ratio was clipped.
        lag: mean over the groups of how often the version changed since they were sampled.
        kl: mean over the tokens of the divergence from the model itself, in nats.
        mismatch: mean over the tokens of the absolute difference between the log-probabilities that
            the sampler and the trainer compute, in nats.
        unique: share of the children that are valid and unlike their siblings and all before.
        common: share that the most frequent answer has among the children.
        tokens: that were learned from, without those that a grammar left no choice for.
        seconds: that the step took.
        swap_ms: that the model took to load the adapter, in milliseconds.
    """

    KIND = "update"
    NAMED_BY = ("number",)
    number: int
    version: int
    groups: tuple[int, ...]
    stale: int
    progress: float
    skipped: str | None = None
    rolled_back: str | None = None
    reward: float
    spread: float = 0.0
    entropy: float = 0.0
    gradient_norm: float = 0.0
    clip_share: float = 0.0
    lag: float = 0.0
    kl: float = 0.0
    mismatch: float = 0.0
    unique: float = 0.0
    common: float = 0.0
    tokens: Tokens = 0
    seconds: float = 0.0
    swap_ms: float = 0.0

    @property
    def stands(self) -> bool:
        """Whether the step brought a new adapter."""
        return self.skipped is None and self.rolled_back is None

"""What a step of training reports, and what can be said of its groups without the model."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from engine.learning.group import Group


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One step. What has the name of a field of `engine.core.Update` means the same.

    Attributes:
        version: of the adapter that the trainer holds afterwards, if it is an earlier one; None for
            a new one.
    """

    version: int | None = None
    skipped: str | None = None
    rolled_back: str | None = None
    reward: float
    spread: float = 0.0
    entropy: float = 0.0
    gradient_norm: float = 0.0
    clip_share: float = 0.0
    kl: float = 0.0
    mismatch: float = 0.0
    unique: float = 0.0
    common: float = 0.0
    tokens: int = 0
    seconds: float = 0.0


def plain_step(groups: Sequence[Group]) -> Step:
    """Return what is known of a step before it is made.

    Args:
        groups: that it learns from; at least one, with at least one member.
    """
    members = [member for group in groups for member in group.members]
    new = {member.key for member in members if member.is_new}
    answers = Counter(
        tuple(answer.token_ids for answer in member.answers) for member in members if member.answers
    )
    common = answers.most_common(1)[0][1] if answers else 0
    return Step(
        reward=sum(member.reward for member in members) / len(members),
        unique=len(new) / len(members),
        common=common / len(members),
    )

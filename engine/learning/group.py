"""A group: the K children of one parent with their rewards, which is what a trainer learns from."""

from dataclasses import dataclass

from engine.core import SampledFrom


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """One answer of the model.

    Attributes:
        sampled_from: the prompt, bans and grammar. Siblings whose prompts are equal share it.
        temperature: that it was sampled at.
        token_ids: its tokens as sampled, with the end-of-answer token if there was one.
        logprobs: of each token, as the sampler computed it; see `engine.core.Generation`.
    """

    sampled_from: SampledFrom
    temperature: float
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One child of a group.

    Attributes:
        answers: that made it: one, or with an advisor several, which share what it is worth.
        reward: see ``engine.learning.rewards``.
        key: of its program, equal for programs that differ in layout alone; None without a program.
        is_new: whether its program has a score and no program before it was the same.
        gain: how much better than its parent's its score is, in the problem's direction; None
            without a score.
    """

    answers: tuple[Answer, ...]
    reward: float
    key: str | None = None
    is_new: bool = False
    gain: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The children of one call.

    Attributes:
        iteration: of the call.
        adapter: version that they were sampled from; 0 for the model itself.
        members: the children, in the order of their indices.
        log: number of the island whose log has the call, where each island has one; else 0.
    """

    iteration: int
    adapter: int
    members: tuple[Member, ...]
    log: int = 0

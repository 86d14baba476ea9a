"""Whether and how the model learns: the group ``learning``."""

from typing import Literal

from pydantic import Field

from engine.section import Count, Gigabytes, Number, Section, Whole, section


@section
class LearningSettings(Section):
    """Whether and how the model learns from the run's children; see ``engine.learning``.

    Attributes:
        method: ``none``, or what children are worth to each other: see
            ``engine.learning.advantages``; ``expert`` imitates the new valid ones.
        adapter: ``last_block`` changes what the last block asks, puts out and makes of it, and so
            no key and no value; ``full`` changes all linear layers.
        reward: ``target`` for Eq. 5 of PACEvolve++, ``rank`` for the place among the siblings; see
            ``engine.learning.rewards``.
        rank: the adapter's.
        groups: calls whose children make up an update.
        learning_rate: AdamW's.
        weight_decay: AdamW's, on the adapter: the pull to the model itself.
        passes: how often an update goes over its groups, each time with a gradient step.
        clip_low: by how much less likely a token may become before its gradient stops.
        clip_high: by how much likelier.
        most_weight: the largest importance weight of a token.
        max_lag: versions that a group may lag behind; older ones are left out.
        best_of: k, the number of children of which the best one counts.
        entropic_kl: gamma, the divergence in nats of the entropic weights from uniform ones.
        most_kl: mean divergence of a token from the model itself, in nats, above which an update is
            rolled back.
        memory_gb: memory of the GPU that the trainer may have, in GiB; unused on a CPU.
    """

    method: Literal[
        "none", "grpo", "entropic", "max_at_k", "phase_adaptive", "mean_baseline", "expert"
    ]
    adapter: Literal["last_block", "full"]
    reward: Literal["target", "rank"]
    rank: Literal[8, 16, 32, 64, 128, 256]
    groups: Count
    learning_rate: Number = Field(gt=0)
    weight_decay: Number = Field(ge=0)
    passes: Count
    clip_low: Number = Field(gt=0, lt=1)
    clip_high: Number = Field(gt=0)
    most_weight: Number = Field(ge=1)
    max_lag: Whole = Field(ge=0)
    best_of: Whole = Field(ge=2)
    entropic_kl: Number = Field(gt=0)
    most_kl: Number = Field(gt=0)
    memory_gb: Gigabytes

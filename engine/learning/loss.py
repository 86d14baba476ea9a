"""The clipped loss of a token (PACEvolve++ Eq. 6), weighted for what drew it."""

import torch

from engine.settings import LearningSettings


def token_losses(
    logprobs: torch.Tensor,
    *,
    old: torch.Tensor,
    recorded: torch.Tensor,
    advantages: torch.Tensor,
    settings: LearningSettings,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each token's loss and whether its ratio was clipped.

    ``-w min(r A, clip(r, 1 - low, 1 + high) A)`` with ``r`` the ratio to the trainer's own
    probability before the update. The sampler's probability may differ, by rounding or by the
    versions between: ``w``, the trainer's over the sampler's, cut off at ``most_weight``, has no
    gradient (truncated importance sampling; Yao et al., "Your efficient RL framework secretly
    brings you off-policy RL training", 2025).

    Args:
        logprobs: of the tokens now, shape (N,).
        old: before the update, shape (N,).
        recorded: as the sampler computed them, shape (N,); NaN where it computed none.
        advantages: of the answers that the tokens are of, shape (N,).
        settings: the clip's bounds and the largest weight.
    """
    ratio = (logprobs - old).exp()
    within = ratio.clamp(1 - settings.clip_low, 1 + settings.clip_high)
    weight = (old - recorded).exp().clamp(max=settings.most_weight).nan_to_num(nan=1.0).detach()
    losses = -weight * torch.minimum(ratio * advantages, within * advantages)
    clipped = within * advantages < ratio * advantages
    return losses, clipped.detach()

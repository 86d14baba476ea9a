"""Log-probabilities of drawn tokens: the model's head, on the rows and columns that matter.

The head is the dearest part of a small model: 49,152 tokens for each position. So it is computed
where a token was drawn, and of it only the rows of tokens that could be drawn there. A token's
log-probability is one number, so its gradient is one vector a position, which the forward pass
computes on the way; logits are never kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from engine.learning.masks import BANNED, Support

_MOST_LOGITS = 4_000_000  # at once
_LEAST_TEMPERATURE = 1e-5  # below it the sampler takes the likeliest token, at temperature 1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Draw:
    """Tokens that were drawn from the same support.

    Attributes:
        support: theirs.
        rows: of the hidden states that predict them, shape (n,).
        targets: which of the allowed tokens was drawn, shape (n,).
        temperatures: shape (n,).
        slots: number of each among all drawn tokens, shape (n,).
    """

    support: Support
    rows: torch.Tensor
    targets: torch.Tensor
    temperatures: torch.Tensor
    slots: torch.Tensor

    def parts(self, vocabulary: int) -> Iterator["Draw"]:
        """Share it out so that no part has many logits."""
        allowed = self.support.allowed
        step = max(1, _MOST_LOGITS // (vocabulary if allowed is None else len(allowed)))
        for start in range(0, len(self.rows), step):
            part = slice(start, start + step)
            yield Draw(
                support=self.support,
                rows=self.rows[part],
                targets=self.targets[part],
                temperatures=self.temperatures[part],
                slots=self.slots[part],
            )


def draws(
    supports: Sequence[Support],
    *,
    rows: torch.Tensor,
    tokens: torch.Tensor,
    temperatures: torch.Tensor,
) -> list[Draw]:
    """Group drawn tokens by what they were drawn from.

    Args:
        supports: of each of the N tokens.
        rows: of the hidden state that predicts each, shape (N,).
        tokens: shape (N,).
        temperatures: that each was drawn at, shape (N,).
    """
    slots: dict[Support, list[int]] = {}
    for slot, support in enumerate(supports):
        slots.setdefault(support, []).append(slot)
    found = []
    for support, chosen in slots.items():
        each = torch.tensor(chosen)
        heat = temperatures[each]
        found.append(
            Draw(
                support=support,
                rows=rows[each],
                targets=support.index(tokens[each]),
                temperatures=torch.where(heat < _LEAST_TEMPERATURE, 1.0, heat),
                slots=each,
            )
        )
    return found


def log_probabilities(
    hidden: torch.Tensor, head: torch.Tensor, chosen: Sequence[Draw]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the log-probability of each drawn token, and the entropy of what it was drawn from.

    The first has a gradient for ``hidden``, the second has none.

    Args:
        hidden: states after the last norm, shape (rows, width).
        head: its weights, shape (vocabulary, width).
        chosen: the draws, N in all.

    Returns:
        two tensors of shape (N,), in nats, float32.
    """
    found, entropies, slots = [], [], []
    for draw in chosen:
        weights = _weights(head, draw.support)
        for part in draw.parts(len(head)):
            states = hidden[part.rows.to(hidden.device)]
            logprobs, entropy = _Drawn.apply(states, weights, part)  # type: ignore[no-untyped-call]
            found.append(logprobs)
            entropies.append(entropy)
            slots.append(part.slots)
    order = torch.argsort(torch.cat(slots)).to(hidden.device)
    return torch.cat(found)[order], torch.cat(entropies)[order]


@torch.no_grad()
def divergences(
    hidden: torch.Tensor, base: torch.Tensor, head: torch.Tensor, chosen: Sequence[Draw]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compare what tokens would be drawn from with what the model itself would draw them from.

    Args:
        hidden: states after the last norm, shape (rows, width).
        base: the same states of the model itself.
        head: see `log_probabilities`.
        chosen: the draws, N in all.

    Returns:
        the sums over the N tokens of the divergence KL(new || base), exactly; of the entropy; and
        of the model's own entropy, all in nats.
    """
    sums = torch.zeros(3, device=hidden.device)
    for draw in chosen:
        weights = _weights(head, draw.support)
        for part in draw.parts(len(head)):
            rows = part.rows.to(hidden.device)
            new = _processed(hidden[rows], weights, part)
            old = _processed(base[rows], weights, part)
            entropy = -(new.exp() * new).sum()
            crossed = -(new.exp() * old).sum()
            sums += torch.stack([crossed - entropy, entropy, -(old.exp() * old).sum()])
    divergence, entropy, own = sums
    return divergence, entropy, own


class _Drawn(torch.autograd.Function):
    """Log-probability and entropy; the gradient is the head's row less the mean row, over T."""

    @staticmethod
    def forward(
        ctx: Any, states: torch.Tensor, weights: torch.Tensor, draw: Draw
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logprobs = _processed(states, weights, draw)
        targets = draw.targets.to(states.device)
        probabilities = logprobs.exp()
        entropy = -(probabilities * logprobs).sum(dim=-1)
        if ctx.needs_input_grad[0]:
            mean = (probabilities.to(weights.dtype) @ weights).float()
            slope = weights[targets].float() - mean
            ctx.save_for_backward(slope / draw.temperatures.to(states.device)[:, None])
            ctx.dtype = states.dtype
        ctx.mark_non_differentiable(entropy)
        return logprobs.gather(1, targets[:, None])[:, 0], entropy

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return (gradients[0][:, None] * slope).to(ctx.dtype), None, None


def _weights(head: torch.Tensor, support: Support) -> torch.Tensor:
    return (
        head if support.allowed is None else head.index_select(0, support.allowed.to(head.device))
    )


def _processed(states: torch.Tensor, weights: torch.Tensor, draw: Draw) -> torch.Tensor:
    """Return the log-probabilities of what may be drawn, shape (n, allowed), in float32."""
    logits = (states @ weights.T).float()
    if len(draw.support.banned):
        logits[:, draw.support.banned.to(states.device)] += BANNED
    logits /= draw.temperatures.to(states.device)[:, None]
    return logits.log_softmax(dim=-1)

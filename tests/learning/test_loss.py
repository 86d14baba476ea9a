"""The clipped loss, by hand."""

from collections.abc import Callable
from math import log

import pytest
import torch

from engine.learning.loss import token_losses
from engine.settings import LearningSettings


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope", "clipped"),
    [
        (1.0, 2.0, -2.0, -2.0, False),
        (1.2, 1.0, -1.2, -1.2, False),
        (1.5, 1.0, -1.28, 0.0, True),  # likelier by more than 0.28
        (1.5, -1.0, 1.5, 1.5, False),  # a bad token that became likelier goes back
        (0.5, -1.0, 0.8, 0.0, True),  # less likely by more than 0.2
        (0.5, 1.0, -0.5, -0.5, False),
    ],
)
def test_the_ratio_is_clipped_on_the_side_that_gains(
    learning: Callable[..., LearningSettings],
    ratio: float,
    advantage: float,
    loss: float,
    slope: float,
    clipped: bool,
) -> None:
    logprobs = torch.tensor([log(ratio) - 1.0], requires_grad=True)
    losses, cut = token_losses(
        logprobs,
        old=torch.tensor([-1.0]),
        recorded=torch.tensor([-1.0]),
        advantages=torch.tensor([advantage]),
        settings=learning(),
    )
    losses.sum().backward()
    assert losses.item() == pytest.approx(loss)
    assert logprobs.grad is not None and logprobs.grad.item() == pytest.approx(slope)
    assert cut.tolist() == [clipped]


def test_tokens_are_weighted_by_what_drew_them(learning: Callable[..., LearningSettings]) -> None:
    """A ratio of 1/2 as it is, 4 cut off at 2, and 1 where nothing was recorded."""
    losses, _ = token_losses(
        torch.full((3,), -1.0),
        old=torch.full((3,), -1.0),
        recorded=torch.tensor([log(2) - 1.0, -log(4) - 1.0, torch.nan]),
        advantages=torch.ones(3),
        settings=learning(most_weight=2.0),
    )
    assert losses.tolist() == pytest.approx([-0.5, -2.0, -1.0])

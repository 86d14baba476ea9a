"""Attention window by window, in place of a model's own.

transformers' blocks hand queries, keys and values to a function that is chosen by name. The one
here goes by the view that a caller of the blocks gives as ``view``: which queries see which keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from engine.learning.packing import Sight, Window

NAME = "brood_windows"


class View(Protocol):
    """Who sees what."""

    def attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """Return what the queries get.

        Args:
            query: after its rotation, shape (heads, T, size).
            key: likewise, shape (KV heads, T, size).
            value: shape (KV heads, T, size).
            scale: of the products of queries and keys.

        Returns:
            shape (heads, T, size).
        """


@dataclass(frozen=True, slots=True)
class Windows:
    """All tokens of a pack, each window in turn. The windows' rows are in order."""

    windows: Sequence[Window]

    def attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """See `View`."""
        parts = torch.split(query, [len(window.rows) for window in self.windows], dim=1)
        return torch.cat(
            [
                _attend(part, key[:, window.keys], value[:, window.keys], window.sight, scale)
                for part, window in zip(parts, self.windows, strict=True)
            ],
            dim=1,
        )


class Recorder:
    """Takes the keys and values and computes nothing."""

    key: torch.Tensor
    value: torch.Tensor

    def attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """See `View`."""
        self.key, self.value = key, value
        return torch.zeros_like(query)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Span:
    """Inputs of the last block where a token of an answer is predicted, and what is seen there.

    Attributes:
        states: inputs of the block, shape (n, width).
        positions: shape (n,).
        key: shape (KV heads, m, size).
        value: shape (KV heads, m, size).
        sight: which of the m is seen.
    """

    states: torch.Tensor
    positions: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    sight: Sight


@dataclass(frozen=True, slots=True)
class Spans:
    """Queries of several spans, with the keys and values that were computed before."""

    spans: Sequence[Span]

    def attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """See `View`."""
        parts = torch.split(query, [len(span.states) for span in self.spans], dim=1)
        return torch.cat(
            [
                _attend(part, span.key, span.value, span.sight, scale)
                for part, span in zip(parts, self.spans, strict=True)
            ],
            dim=1,
        )


def register() -> None:
    """Make transformers know the attention as `NAME`."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, _viewed)


def _viewed(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: None,
    *,
    scaling: float,
    view: View,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Return the outputs, shape (1, T, heads, size), as transformers wants them."""
    return view.attend(query[0], key[0], value[0], scaling).transpose(0, 1)[None], None


def _attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, sight: Sight, scale: float
) -> torch.Tensor:
    """Return what a window's queries get.

    Heads that share keys are put one below the other, so no key is copied for them.
    """
    heads, count, size = query.shape
    shared = heads // key.shape[0]
    rows = query.reshape(key.shape[0], shared * count, size)
    found = torch.nn.functional.scaled_dot_product_attention(
        rows[None], key[None], value[None], attn_mask=sight.mask.repeat(shared, 1), scale=scale
    )
    return found[0].reshape(heads, count, size)

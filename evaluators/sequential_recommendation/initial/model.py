"""Features, encoder and scores of a sequential recommender. What stands in the block may change."""

import math

import torch
from torch import nn
from torch.nn import functional


# EVOLVE-BLOCK-START
class Features(nn.Module):
    """What is known of each video of a history, as one vector."""

    def __init__(self, num_items, length, width):
        super().__init__()
        self.items = nn.Embedding(num_items + 1, width, padding_idx=num_items)
        self.positions = nn.Embedding(length, width)
        self.rest = nn.Linear(4, width)
        nn.init.normal_(self.items.weight, std=0.1)
        nn.init.normal_(self.positions.weight, std=0.02)

    def forward(self, items, times, watch_ratios):
        gaps = torch.diff(times, dim=1, prepend=times[:, :1])
        of_day = 2 * math.pi * (times / 86400 % 1)
        rest = [torch.log1p(gaps), torch.sin(of_day), torch.cos(of_day), watch_ratios]
        known = self.rest(torch.stack([each.float() for each in rest], dim=-1))
        return self.items(items) + known + self.positions.weight[: items.shape[1]], gaps


def scan(decay, values):
    """Return y with y[i] = values[i] + decay[i] * y[i - 1], along dimension 1."""
    step = 1
    while step < values.shape[1]:
        values = values + decay * functional.pad(values[:, :-step], (0, 0, step, 0))
        decay = decay * functional.pad(decay[:, :-step], (0, 0, step, 0))
        step *= 2
    return values


class Block(nn.Module):
    """Mixes a sequence in three channels: by steps back, by time passed, and by position."""

    def __init__(self, width):
        super().__init__()
        self.before = nn.LayerNorm(width)
        self.open = nn.Linear(width, 4 * width)
        self.retained = nn.Parameter(torch.linspace(0.0, 4.0, width))
        self.seconds = nn.Parameter(torch.linspace(3.0, 11.0, width))  # as logarithms
        self.nearby = nn.Conv1d(width, width, 4, groups=width)
        self.mixed = nn.LayerNorm(3 * width)
        self.close = nn.Linear(3 * width, width)
        self.feed = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)
        )

    def forward(self, x, gaps):
        first, second, third, gate = self.open(self.before(x)).chunk(4, dim=-1)
        retention = scan(torch.sigmoid(self.retained).expand_as(first), first)
        passed = torch.exp(-gaps[..., None].float() * torch.exp(-self.seconds))
        temporal = scan(passed, second)
        nearby = self.nearby(functional.pad(third.transpose(1, 2), (3, 0))).transpose(1, 2)
        mixed = self.mixed(torch.cat([retention, temporal, nearby], dim=-1))
        x = x + self.close(mixed * functional.silu(gate).repeat(1, 1, 3))
        return x + self.feed(x)


class Encoder(nn.Module):
    """Histories to states, and states to scores of videos."""

    def __init__(self, *, num_items, length, width, blocks):
        super().__init__()
        self.features = Features(num_items, length, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.after = nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(num_items))

    def forward(self, items, times, watch_ratios):
        """Return a state for each place of each history, (users, length, width)."""
        x, gaps = self.features(items, times, watch_ratios)
        for block in self.blocks:
            x = block(x, gaps)
        return self.after(x)

    def score(self, states, items):
        """Return the score of ``items``, (m,) or (n, m), for each of the n states, (n, m)."""
        vectors, bias = self.features.items(items), self.bias[items]
        if items.dim() == 1:
            return states @ vectors.T + bias
        return (states[:, None] * vectors).sum(dim=-1) + bias


# EVOLVE-BLOCK-END

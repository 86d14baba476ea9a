"""Scores with what is no number, in the hope that the order of such scores says something."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, *, num_items, length, width, blocks):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(num_items))

    def forward(self, items, times, watch_ratios):
        return torch.zeros(*items.shape, 1)

    def score(self, states, items):
        odd = torch.tensor([torch.nan, torch.inf, -torch.inf])[items % 3]
        scores = self.weight[items].expand(len(states), items.shape[-1])
        return scores if self.training else scores + odd

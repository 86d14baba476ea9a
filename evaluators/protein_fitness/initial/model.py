"""Features, predictor and ensemble for variants. What stands in the block may change."""

import numpy as np
import torch
from torch import nn

# EVOLVE-BLOCK-START
HIDDEN = 32
DECAY = 0.003
WEIGHTS = (1.0, 1.0, 1.0)  # of the wild type, singles and doubles


class Features:
    """A column for each mutation of the training data: 1 where a variant has it."""

    def __init__(self, wild_type, train_sequences):
        self.wild_type = wild_type
        self.vocabulary = np.unique(self.find_mutations(train_sequences)[1])

    def find_mutations(self, sequences):
        """Return rows and codes, 20 * position + amino acid, of all mutations."""
        rows, positions = np.nonzero(sequences != self.wild_type)
        return rows, 20 * positions + sequences[rows, positions].astype(np.int64)

    def __call__(self, sequences):
        """Return the features of ``sequences``, a float tensor of shape (n, columns)."""
        rows, codes = self.find_mutations(sequences)
        features = np.zeros((len(sequences), len(self.vocabulary)), dtype=np.float32)
        features[rows, np.searchsorted(self.vocabulary, codes)] = 1
        return torch.from_numpy(features)


class Predictor(nn.Module):
    """A small network."""

    def __init__(self, columns):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(columns, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))

    def forward(self, features):
        """Return the fitness of each row, (n,), in units of the training data's spread."""
        return self.layers(features)[:, 0]


def sample_weights(orders):
    """Return the weight of each training variant, by its number of mutations."""
    return torch.tensor(WEIGHTS)[orders]


def penalty(predictor):
    """Return what is added to the loss."""
    return DECAY * sum((values**2).sum() for values in predictor.parameters())


def combine(predictions):
    """Return the ensemble's prediction, (m,), from those of its members, (members, m)."""
    return predictions.mean(dim=0)


# EVOLVE-BLOCK-END

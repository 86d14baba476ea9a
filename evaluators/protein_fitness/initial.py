import numpy as np
import torch
from torch import nn

HIDDEN = 32
BATCH = 128
STEPS = 300


def find_mutations(sequences, wild_type):
    """Return rows and codes (20 * position + amino acid) of all mutations in the sequences."""
    rows, positions = np.nonzero(sequences != wild_type)
    return rows, 20 * positions + sequences[rows, positions].astype(np.int64)


def featurize(sequences, wild_type, vocabulary):
    """Return a column for each mutation of the vocabulary: 1 where a sequence has it."""
    rows, codes = find_mutations(sequences, wild_type)
    known = np.isin(codes, vocabulary)
    features = np.zeros((len(sequences), len(vocabulary)), dtype=np.float32)
    features[rows[known], np.searchsorted(vocabulary, codes[known])] = 1
    return torch.from_numpy(features)


def predict_fitness(wild_type, train_sequences, train_fitness, test_sequences):
    """Train a small network on which mutations a variant has."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    vocabulary = np.unique(find_mutations(train_sequences, wild_type)[1])
    inputs = featurize(train_sequences, wild_type, vocabulary)
    mean, spread = train_fitness.mean(), train_fitness.std() + 1e-9
    targets = torch.tensor((train_fitness - mean) / spread, dtype=torch.float32)
    model = nn.Sequential(nn.Linear(len(vocabulary), HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    for _ in range(STEPS):
        batch = torch.randint(len(inputs), (BATCH,))
        loss = torch.mean((model(inputs[batch])[:, 0] - targets[batch]) ** 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    predictions = []
    with torch.no_grad():
        for start in range(0, len(test_sequences), 4096):
            part = featurize(test_sequences[start : start + 4096], wild_type, vocabulary)
            predictions.append(model(part)[:, 0])
    return {"fitness": torch.cat(predictions).double().numpy() * spread + mean}

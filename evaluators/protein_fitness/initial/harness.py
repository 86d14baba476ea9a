"""The training of each member of an ensemble and its prediction. They stay as they are.

The numbers are bound when the functions are defined: to set them later changes nothing.
"""

import model
import numpy as np
import torch

BATCH = 128
LEARNING_RATE = 0.01
PREDICTED_AT_ONCE = 4096


def predict_fitness(wild_type, train_sequences, train_fitness, test_sequences, members, steps):
    """Train ``members`` predictors of ``model`` and return what they say of the test variants."""
    torch.set_num_threads(1)
    orders = torch.from_numpy((train_sequences != wild_type).sum(axis=1))
    mean, spread = train_fitness.mean(), train_fitness.std() + 1e-9
    targets = torch.tensor((train_fitness - mean) / spread, dtype=torch.float32)
    predictions = []
    for member in range(members):
        torch.manual_seed(member)
        features = model.Features(wild_type, train_sequences)
        inputs = features(train_sequences)
        predictor = model.Predictor(inputs.shape[1])
        train(predictor, inputs, targets, model.sample_weights(orders), steps)
        predictions.append(predict(predictor, features, test_sequences))
    combined = model.combine(torch.stack(predictions))
    return {"fitness": combined.double().numpy() * spread + mean}


def train(predictor, inputs, targets, weights, steps, *, batch_size=BATCH, rate=LEARNING_RATE):
    """Weighted squared error plus the model's own penalty, for ``steps`` batches."""
    optimizer = torch.optim.Adam(predictor.parameters(), lr=rate)
    predictor.train()
    for _ in range(steps):
        batch = torch.randint(len(inputs), (batch_size,))
        errors = (predictor(inputs[batch]) - targets[batch]) ** 2
        loss = (weights[batch] * errors).sum() / weights[batch].sum() + model.penalty(predictor)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def predict(predictor, features, sequences):
    """Return the predictions for ``sequences``, (m,), in parts that need little memory."""
    predictor.eval()
    parts = np.array_split(sequences, -(-len(sequences) // PREDICTED_AT_ONCE))
    return torch.cat([predictor(features(part)) for part in parts])

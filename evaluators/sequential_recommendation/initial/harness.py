"""The data's way into the model, its training and the ranking. They stay as they are.

The numbers are bound when the functions are defined: to set them later changes nothing.
"""

import model
import numpy as np
import torch
from torch.nn import functional

EPOCHS = 16
BATCH = 16
NEGATIVES = 128
LEARNING_RATE = 0.005
WEIGHT_DECAY = 0.01
LARGEST_GRADIENT = 1.0


def recommend(items, times, watch_ratios, starts, num_items, k, length, width, blocks):
    """Train the encoder of ``model`` on the histories, and rank the catalogue for every user."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    histories = last_ones(items, times, watch_ratios, starts, num_items, length)
    encoder = model.Encoder(num_items=num_items, length=length, width=width, blocks=blocks)
    train(encoder, histories, num_items)
    return {"recommendations": rank(encoder, histories, num_items, k)}


def last_ones(items, times, watch_ratios, starts, num_items, length):
    """Return the last ``length`` videos of each user as tensors (users, length).

    Filled up at the end: with the video ``num_items``, the last time and a watch ratio of 0.
    """
    ends = starts[1:]
    counts = np.minimum(ends - starts[:-1], length)
    places = ends[:, None] - counts[:, None] + np.arange(length)
    known = np.arange(length) < counts[:, None]
    places = np.where(known, places, ends[:, None] - 1)
    return (
        torch.from_numpy(np.where(known, items[places], num_items)),
        torch.from_numpy(times[places] - times[places[:, :1]]),
        torch.from_numpy(np.where(known, watch_ratios[places], 0.0)).float(),
    )


def train(
    encoder,
    histories,
    num_items,
    *,
    epochs=EPOCHS,
    batch=BATCH,
    negatives=NEGATIVES,
    rate=LEARNING_RATE,
    decay=WEIGHT_DECAY,
):
    """Sampled softmax: each next video against ``negatives`` that chance draws for the batch."""
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=rate, weight_decay=decay)
    encoder.train()
    for _ in range(epochs):
        for users in torch.randperm(len(histories[0])).split(batch):
            items, times, ratios = (each[users] for each in histories)
            known = items[:, 1:] < num_items
            if not known.any():
                continue
            targets = items[:, 1:][known]
            states = encoder(items[:, :-1], times[:, :-1], ratios[:, :-1])[known]
            drawn = torch.randint(num_items, (negatives,))
            others = encoder.score(states, drawn)
            others = others.masked_fill(targets[:, None] == drawn, -torch.inf)
            logits = torch.cat([encoder.score(states, targets[:, None]), others], dim=1)
            loss = functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(encoder.parameters(), LARGEST_GRADIENT)
            optimizer.step()


@torch.no_grad()
def rank(encoder, histories, num_items, k):
    """Return the ``k`` videos of the whole catalogue with the best scores, (users, k)."""
    encoder.eval()
    catalogue, rows = torch.arange(num_items), []
    for users in torch.arange(len(histories[0])).split(4 * BATCH):
        items, times, ratios = (each[users] for each in histories)
        last = (items < num_items).sum(dim=1) - 1
        states = encoder(items, times, ratios)[torch.arange(len(users)), last]
        scores = torch.nan_to_num(encoder.score(states, catalogue), nan=-torch.inf)
        rows.append(torch.topk(scores, k, dim=1).indices)
    return torch.cat(rows).numpy()

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

LENGTH = 50
WIDTH = 32
BATCH = 64
EPOCHS = 16
MAX_STEPS = 150  # keeps the time in bounds where there are many users


class Recommender(nn.Module):
    """A small recurrent network over the items of a history."""

    def __init__(self, num_items):
        super().__init__()
        self.embedding = nn.Embedding(num_items + 1, WIDTH, padding_idx=num_items)
        self.mixer = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.bias = nn.Parameter(torch.zeros(num_items))

    def forward(self, histories):
        states, _ = self.mixer(self.embedding(histories))
        return states

    def scores(self, states):
        return states @ self.embedding.weight[:-1].T + self.bias


def last_items(items, starts, num_items):
    """Return the last LENGTH items of each user, padded with num_items at the end."""
    users = len(starts) - 1
    histories = np.full((users, LENGTH), num_items)
    lengths = np.minimum(np.diff(starts), LENGTH)
    for u in range(users):
        histories[u, : lengths[u]] = items[starts[u + 1] - lengths[u] : starts[u + 1]]
    return torch.from_numpy(histories), torch.from_numpy(lengths)


def recommend(items, times, watch_ratios, starts, num_items, k):
    """Train a GRU to predict the next item, and rank the items by its scores."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    histories, lengths = last_items(items, starts, num_items)
    model = Recommender(num_items)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(min(EPOCHS * -(-len(histories) // BATCH), MAX_STEPS)):
        batch = histories[torch.randint(len(histories), (BATCH,))]
        inputs, targets = batch[:, :-1], batch[:, 1:]
        known = targets < num_items
        logits = model.scores(model(inputs)[known])
        loss = F.cross_entropy(logits, targets[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    rows = []
    with torch.no_grad():
        for users in torch.arange(len(histories)).split(256):
            states = model(histories[users])
            last = states[torch.arange(len(users)), lengths[users] - 1]
            rows.append(torch.topk(model.scores(last), k, dim=1).indices)
    return {"recommendations": torch.cat(rows).numpy()}

"""Answers ready to be computed: their prepared tokens, and which of those were a choice."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from engine.learning.group import Answer
from engine.learning.head import Draw, divergences, draws, log_probabilities
from engine.learning.masks import Masks, Support
from engine.learning.network import Network, Prepared
from engine.learning.packing import split, split_padded

_MOST_TOKENS = 16384  # computed at once; prompts that begin alike take less


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batch:
    """Answers with N tokens that were a choice: that a grammar did not force.

    Attributes:
        answers: at least one token of each was a choice.
        prepared: the answers as the network takes them.
        draws: the N tokens.
        owners: which answer each is of, among all that were asked for, shape (N,).
        steps: its place in that answer, shape (N,).
        recorded: its log-probability as the sampler computed it, shape (N,); NaN for none.
    """

    answers: tuple[Answer, ...]
    prepared: Prepared
    draws: tuple[Draw, ...]
    owners: torch.Tensor
    steps: torch.Tensor
    recorded: torch.Tensor

    def compute(self, network: Network) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the tokens' log-probabilities, with a gradient, and entropies; see ``head.py``."""
        return log_probabilities(network.states(self.prepared), network.head, self.draws)

    @torch.no_grad()
    def against_model(self, network: Network) -> torch.Tensor:
        """Return three sums over the tokens, shape (3,); see `divergences`."""
        new = network.states(self.prepared)
        with network.without_adapter():
            base = network.states(self.prepared)
        return torch.stack(divergences(new, base, network.head, self.draws))


def batches(answers: Sequence[Answer], *, network: Network, masks: Masks) -> Iterator[Batch]:
    """Prepare answers, so many at once as memory allows; those without a choice are left out."""
    supports = [masks.supports(answer) for answer in answers]
    chosen = [i for i, each in enumerate(supports) if any(not one.is_forced for one in each)]
    sequences = [(answers[i].sampled_from.prompt_ids, answers[i].token_ids) for i in chosen]
    share = split if network.is_packed else split_padded
    for part in share(sequences, most_tokens=_MOST_TOKENS):
        yield batch(
            network.prepare([sequences[i] for i in part]),
            answers=[answers[chosen[i]] for i in part],
            supports=[supports[chosen[i]] for i in part],
            numbers=[chosen[i] for i in part],
        )


def batch(
    prepared: Prepared,
    *,
    answers: Sequence[Answer],
    supports: Sequence[Sequence[Support]],
    numbers: Sequence[int],
) -> Batch:
    """Return a batch of prepared answers.

    Args:
        prepared: of the answers, in their order.
        answers: at least one token of which was a choice.
        supports: see `Masks.supports`.
        numbers: of each answer, for `Batch.owners`.
    """
    tokens, rows, heats, recorded, owners, steps, found = [], [], [], [], [], [], []
    for index, (answer, each) in enumerate(zip(answers, supports, strict=True)):
        places = prepared.places[index].tolist()
        has_logprobs = len(answer.logprobs) == len(answer.token_ids)
        for step, support in enumerate(each):
            if support.is_forced:
                continue
            found.append(support)
            tokens.append(answer.token_ids[step])
            rows.append(places[step])
            heats.append(answer.temperature)
            recorded.append(answer.logprobs[step] if has_logprobs else float("nan"))
            owners.append(numbers[index])
            steps.append(step)
    return Batch(
        answers=tuple(answers),
        prepared=prepared,
        draws=tuple(
            draws(
                found,
                rows=torch.tensor(rows),
                tokens=torch.tensor(tokens),
                temperatures=torch.tensor(heats, dtype=torch.float32),
            )
        ),
        owners=torch.tensor(owners),
        steps=torch.tensor(steps),
        recorded=torch.tensor(recorded, dtype=torch.float32),
    )

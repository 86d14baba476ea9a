"""Fitting an adapter to examples: cross-entropy on their tokens, in a bounded number of steps."""

import math
from collections.abc import Iterator, Sequence

import torch

from engine.learning.batch import batch
from engine.learning.group import Answer
from engine.learning.masks import Masks, Support
from engine.learning.network import Network, Prepared
from engine.learning.optimizer import AdapterOptimizer

_EPOCHS = 4
# Where the last block alone is computed for an example, a step is cheap.
_SIZE, _MOST_STEPS = 16, 32
_SIZE_OF_ALL, _MOST_STEPS_OF_ALL = 4, 4


class Refit:
    """Keeps what was computed for the examples, as long as they are examples."""

    def __init__(self, *, network: Network, masks: Masks, optimizer: AdapterOptimizer) -> None:
        self._network = network
        self._masks = masks
        self._optimizer = optimizer
        self._ready: dict[Answer, Prepared] = {}

    def fit(self, answers: Sequence[Answer], *, generator: torch.Generator) -> tuple[float, int]:
        """Fit the adapter as it is to answers.

        Args:
            answers: the examples'.
            generator: that the order is drawn from.

        Returns:
            the largest norm of a gradient, and the number of the answers' tokens that were a
            choice.
        """
        supports = {answer: self._masks.supports(answer) for answer in answers}
        chosen = [
            answer for answer, each in supports.items() if any(not one.is_forced for one in each)
        ]
        if not chosen:
            return 0.0, 0
        self._prepare(chosen)
        is_cheap = self._network.keeps_spans
        size = _SIZE if is_cheap else _SIZE_OF_ALL
        most = _MOST_STEPS if is_cheap else _MOST_STEPS_OF_ALL
        steps = min(most, math.ceil(_EPOCHS * len(chosen) / size))
        norms = [
            self._step([chosen[index] for index in part], supports)
            for part in _minibatches(len(chosen), size=size, steps=steps, generator=generator)
        ]
        finite = all(math.isfinite(norm) for norm in norms)
        tokens = sum(not one.is_forced for answer in chosen for one in supports[answer])
        return max(norms) if finite else math.inf, tokens

    def _prepare(self, answers: Sequence[Answer]) -> None:
        wanted = set(answers)
        self._ready = {answer: each for answer, each in self._ready.items() if answer in wanted}
        for answer in answers:
            if answer not in self._ready:
                # Each alone: how a sum is rounded may depend on what is computed beside it, and a
                # trainer that was restored has all of them to compute at once.
                alone = self._network.prepare([(answer.sampled_from.prompt_ids, answer.token_ids)])
                self._ready[answer] = self._network.cut(alone, 0)

    def _step(self, answers: Sequence[Answer], supports: dict[Answer, list[Support]]) -> float:
        prepared = self._network.join([self._ready[answer] for answer in answers])
        joined = batch(
            prepared,
            answers=answers,
            supports=[supports[answer] for answer in answers],
            numbers=range(len(answers)),
        )
        logprobs, _ = joined.compute(self._network)
        (-logprobs.mean()).backward()  # type: ignore[no-untyped-call]
        return self._optimizer.step()


def _minibatches(
    count: int, *, size: int, steps: int, generator: torch.Generator
) -> Iterator[list[int]]:
    """Yield ``steps`` lists of indices below ``count``; all are drawn equally often, to one."""
    order: list[int] = []
    for _ in range(steps):
        if len(order) < min(size, count):
            order += torch.randperm(count, generator=generator).tolist()
        yield order[: min(size, count)]
        order = order[min(size, count) :]

"""K answers to one prompt as they finish, and what they cost.

Does not cover the engine's side: ``engine.inference.fanout``.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from engine.core import Generation
from engine.inference import Sampling
from engine.inference.model import Children

_SEEDS = 1 << 32


def siblings(
    k: int,
    *,
    temperature: float = 1.0,
    max_tokens: int = 256,
    seed: int = 0,
    stop: Sequence[str] = (),
) -> tuple[Sampling, ...]:
    """Return how K answers are sampled that differ in nothing but their seeds.

    Args:
        k: how many, 1 or more.
        temperature: of each.
        max_tokens: of each.
        seed: of the first; the others' follow it.
        stop: texts that end an answer and are no part of it.

    Raises:
        ValueError: a number is out of its bounds.
    """
    if k < 1 or max_tokens < 1 or temperature < 0:
        raise ValueError("k and max_tokens must be 1 or more, temperature 0 or more")
    return tuple(
        Sampling(
            temperature=temperature,
            seed=(seed + index) % _SEEDS,
            stop=tuple(stop),
            max_tokens=max_tokens,
        )
        for index in range(k)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What the answers so far have cost.

    Attributes:
        answers: how many there are.
        prompt_tokens: summed over them: each was asked with the whole prompt.
        computed_prompt_tokens: those that the prefix cache did not serve.
        generated_tokens: summed over them.
        seconds: wall, from the question to the last of them.
    """

    answers: int = 0
    prompt_tokens: int = 0
    computed_prompt_tokens: int = 0
    generated_tokens: int = 0
    seconds: float = 0.0


class Fan:
    """Answers to one prompt; iterate over it, once, to get each when it is done.

    Leaving the iteration ends the answers that are not done. Several fans of one engine may be
    iterated over in turns: each step of the engine is one of all, and each keeps its own answers.

    Attributes:
        cost: of the answers that were handed out.
    """

    def __init__(self, begin: Callable[[], Children], step: Callable[[], None]) -> None:
        """Ask; ``begin`` hands the requests to the model, ``step`` runs it for a step."""
        self._began = time.perf_counter()
        self._children = begin()
        self._step = step
        self.cost = Cost()

    def __iter__(self) -> Iterator[Generation]:
        """Step the model until every answer was handed out."""
        try:
            while self._children.indices:
                self._step()
                yield from self._finished()
            yield from self._finished()
        finally:
            self.close()

    def texts(self) -> dict[int, str]:
        """Return what the answers that are not done have so far, by index."""
        return dict(self._children.texts())

    def abort(self, index: int) -> None:
        """End an answer now; it is still handed out, with what it has."""
        self._children.abort(index)

    def close(self) -> None:
        """End the answers that are not done, without handing them out; idempotent."""
        self._children.close()

    def _finished(self) -> Iterator[Generation]:
        for each in self._children.take():
            cost = self.cost
            self.cost = Cost(
                answers=cost.answers + 1,
                prompt_tokens=cost.prompt_tokens + each.prompt_tokens,
                computed_prompt_tokens=cost.computed_prompt_tokens
                + each.prompt_tokens
                - each.cached_prompt_tokens,
                generated_tokens=cost.generated_tokens + each.generated_tokens,
                seconds=time.perf_counter() - self._began,
            )
            yield each

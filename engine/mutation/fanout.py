"""K children of one prompt that are mutations of it: the counterpart of `engine.inference.FanOut`.

A child is written whole, in one go. Ending one early writes it too: so what is recorded of a call
depends on its prompt and its seeds alone, and not on how far a model was when a budget was spent.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from engine.core import Generation
from engine.inference import Sampling
from engine.mutation.mutate import mutated


class MutationFanOut:
    """The children of one program; made by `MutationModel.fanout`."""

    def __init__(self, *, token_ids: Sequence[int], sampling: Sequence[Sampling]) -> None:
        """Begin with nothing written.

        Args:
            token_ids: the program, one character a token.
            sampling: of each child.
        """
        self._program = "".join(map(chr, token_ids))
        self._running = dict(enumerate(sampling))
        self._finished: list[Generation] = []

    @property
    def request_ids(self) -> tuple[str, ...]:
        """Of the children that are not written."""
        return tuple(map(str, self._running))

    @property
    def indices(self) -> tuple[int, ...]:
        """Numbers of the children that are not written."""
        return tuple(self._running)

    @property
    def in_flight(self) -> int:
        """Children that were not handed out yet."""
        return len(self._running) + len(self._finished)

    @property
    def is_running(self) -> bool:
        """Whether there is a child that was not handed out yet."""
        return self.in_flight > 0

    def write(self) -> None:
        """Write all children."""
        for index in self.indices:
            self.abort(index)

    def take(self) -> list[Generation]:
        """Return the children that were written since the last time."""
        finished, self._finished = self._finished, []
        return finished

    def texts(self) -> Mapping[int, str]:
        """Return what there is of the children that are not written: nothing."""
        return {}

    def abort(self, index: int) -> None:
        """Write child ``index`` now."""
        sampling = self._running.pop(index, None)
        if sampling is not None:
            self._finished.append(self._generation(index, sampling))

    def close(self) -> None:
        """Forget every child that was not handed out."""
        self._running.clear()
        self._finished.clear()

    def _generation(self, index: int, sampling: Sampling) -> Generation:
        began = time.perf_counter()
        whole = mutated(self._program, seed=sampling.seed, temperature=sampling.temperature)
        text = whole[: sampling.max_tokens]
        return Generation(
            index=index,
            text=text,
            token_ids=tuple(map(ord, text)),
            finish_reason="stop" if text == whole else "length",
            prompt_tokens=len(self._program),
            cached_prompt_tokens=0,
            llm_seconds=time.perf_counter() - began,
        )

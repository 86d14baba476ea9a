"""K children of one prompt that are mutations of it: the counterpart of `engine.inference.FanOut`.

A child is written whole, in one go, also when it is ended early. So what is recorded of a call
depends on its prompt and its seeds alone, not on the moment when the budget was spent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor

from engine.core import Generation
from engine.inference import Sampling
from engine.mutation.mutate import timed


class MutationFanOut:
    """The children of one program; made by `MutationModel.fanout`."""

    def __init__(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], syntax: Executor
    ) -> None:
        """Begin with nothing written.

        Args:
            token_ids: the program, one character a token.
            sampling: of each child.
            syntax: processes that mutate.
        """
        self._program = "".join(map(chr, token_ids))
        self._syntax = syntax
        self._running = dict(enumerate(sampling))
        self._finished: list[Generation] = []

    @property
    def indices(self) -> tuple[int, ...]:
        """Numbers of the children that are not written."""
        return tuple(self._running)

    @property
    def is_running(self) -> bool:
        """Whether there is a child that was not handed out yet."""
        return bool(self._running or self._finished)

    def begin(self) -> Callable[[], None]:
        """Begin to write all children; return what waits for them."""
        running, self._running = self._running, {}
        children = {
            index: self._syntax.submit(
                timed, self._program, seed=each.seed, temperature=each.temperature
            )
            for index, each in running.items()
        }

        def wait() -> None:
            for index, child in children.items():
                self._finished.append(self._generation(index, running[index], *child.result()))

        return wait

    def take(self) -> list[Generation]:
        """Return the children that were written since the last time."""
        finished, self._finished = self._finished, []
        return finished

    def texts(self) -> Mapping[int, str]:
        """Return what there is of the children that are not written: nothing."""
        return {}

    def abort(self, index: int) -> None:
        """Write child ``index`` now."""
        each = self._running.pop(index, None)
        if each is not None:
            child = timed(self._program, seed=each.seed, temperature=each.temperature)
            self._finished.append(self._generation(index, each, *child))

    def close(self) -> None:
        """Forget every child that was not handed out."""
        self._running.clear()
        self._finished.clear()

    def _generation(self, index: int, sampling: Sampling, whole: str, seconds: float) -> Generation:
        text = whole[: sampling.max_tokens]
        return Generation(
            index=index,
            text=text,
            token_ids=tuple(map(ord, text)),
            finish_reason="stop" if text == whole else "length",
            prompt_tokens=len(self._program),
            cached_prompt_tokens=0,
            llm_seconds=seconds,
        )

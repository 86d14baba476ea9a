"""A stand-in for a language model: its answer to a program is the program, mutated.

It has the interface of `engine.inference.LanguageModel`, so the decoder, the loop, the search and
the store run with it unchanged. It needs no weights, and its children follow from prompt, seed and
temperature alone. What it finds is what chance finds.

- A prompt is a program, and a token is a character of it.
- A child's temperature is the mean number of its mutations beyond the first (``mutate.py``).
- No prompt token is ever cached, because nothing is computed that could be kept. A run's hit rate
  is 0, and every token counts as one that fills no block of a cache.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path

from engine.core import ChatFrame, Generation, UserError
from engine.inference import EngineLoad, Sampling
from engine.mutation.mutate import timed
from engine.settings import ModelSettings


class MutationFanOut:
    """K mutations of a program: the counterpart of `engine.inference.FanOut`.

    A child is written whole, in one go, also when it is ended early. So what is recorded of a call
    depends on its prompt and its seeds alone, not on the moment when the budget was spent.
    """

    def __init__(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], syntax: Executor
    ) -> None:
        """Have all children begun.

        Args:
            token_ids: the program, one character a token.
            sampling: of each child.
            syntax: processes that mutate.
        """
        self._program = "".join(map(chr, token_ids))
        self._limits = [each.max_tokens for each in sampling]
        self._running = {
            index: syntax.submit(timed, self._program, seed=each.seed, temperature=each.temperature)
            for index, each in enumerate(sampling)
        }
        self._finished: list[Generation] = []

    @property
    def indices(self) -> tuple[int, ...]:
        """Numbers of the children that are not written."""
        return tuple(self._running)

    def take(self) -> list[Generation]:
        """Return the children that were written since the last time."""
        finished, self._finished = self._finished, []
        return finished

    def texts(self) -> Mapping[int, str]:
        """Return what there is of the children that are not written: nothing."""
        return {}

    def abort(self, index: int) -> None:
        """Wait until child ``index`` is written."""
        child = self._running.pop(index, None)
        if child is None:
            return
        whole, seconds = child.result()
        text = whole[: self._limits[index]]
        generation = Generation(
            index=index,
            text=text,
            token_ids=tuple(map(ord, text)),
            finish_reason="stop" if text == whole else "length",
            prompt_tokens=len(self._program),
            cached_prompt_tokens=0,
            llm_seconds=seconds,
        )
        self._finished.append(generation)

    def close(self) -> None:
        """Forget every child that was not handed out."""
        self._running.clear()
        self._finished.clear()


class MutationModel:
    """Mutates programs; see the module."""

    def __init__(self, settings: ModelSettings, *, syntax: Executor) -> None:
        """Set the limits that ``settings`` has; ``syntax`` are the processes that mutate."""
        self._syntax = syntax
        self._fans: list[MutationFanOut] = []
        self.max_model_len = settings.max_model_len
        self.block_size = settings.max_model_len

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        """Return the characters of ``text``, as numbers."""
        return [*map(ord, text)]

    def chat_frame(self, *, system: str) -> ChatFrame:
        """Refuse.

        Raises:
            UserError: always: it reads programs alone.
        """
        raise UserError("model=mutation reads programs, no messages; use operator mutation")

    def adopt(self, version: int, folder: Path) -> None:
        """Refuse.

        Raises:
            ValueError: always: there is nothing to adapt.
        """
        raise ValueError("a mutation takes no adapter")

    def fanout(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int = 0
    ) -> MutationFanOut:
        """Ask for one child per entry of ``sampling``, all mutations of one program.

        Raises:
            ValueError: the program and the longest child exceed ``max_model_len``, or a child is to
                follow stop strings, bans, a grammar, a schema or an adapter, of which a mutation
                knows nothing.
        """
        longest = len(token_ids) + max(each.max_tokens for each in sampling)
        if longest > self.max_model_len:
            raise ValueError(f"{longest} tokens exceed the model's {self.max_model_len}")
        if any(each.stop or each.banned or each.grammar or each.schema for each in sampling):
            raise ValueError("a mutation follows no stop strings, bans, grammar or schema")
        if adapter:
            raise ValueError("a mutation takes no adapter")
        fan = MutationFanOut(token_ids=token_ids, sampling=sampling, syntax=self._syntax)
        self._fans.append(fan)
        return fan

    def step(self) -> None:
        """Write every child that was asked for."""
        for fan in self._fans:
            for index in fan.indices:
                fan.abort(index)
        self._fans.clear()

    def load(self) -> EngineLoad:
        """Return that nothing waits and nothing is held."""
        return EngineLoad(waiting=0, kv_usage=0.0)

    def prefill(self, token_ids: Sequence[int]) -> bool:
        """Return that nothing is kept of a prompt: there is no KV."""
        return False

    def forget(self) -> None:
        """Forget nothing: there is no prefix cache to empty."""

    def close(self) -> None:
        """Free nothing."""

"""What a run needs of a model: K children from one prompt, step by step.

`engine.inference.LanguageModel` is vLLM's; ``engine.mutation`` has one without a language model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.core import ChatFrame, Generation


class ModelLost(Exception):
    """The model can't go on in this process: one line that says why.

    What is recorded is on disk, and a run goes on with ``resume=`` in another process.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How one child is sampled.

    Attributes:
        temperature: 0 for the likeliest token each time.
        seed: of its random numbers.
        stop: texts that end it.
        max_tokens: at which it ends.
        banned: tokens that it may not hold.
        grammar: EBNF that it follows; None for none.
        schema: JSON schema that it follows; None for none.
        reads_cache: whether its prompt may come from the prefix cache; if not, all of it is
            computed, as by an engine that has none.
    """

    temperature: float
    seed: int
    stop: tuple[str, ...]
    max_tokens: int
    banned: tuple[int, ...] = ()
    grammar: str | None = None
    schema: str | None = None
    reads_cache: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineLoad:
    """How loaded the engine was in its last step.

    Attributes:
        waiting: requests that vLLM had no room for.
        kv_usage: share of the KV cache's blocks that running requests hold, from 0 to 1; blocks
            that are merely cached can be had, and do not count.
    """

    waiting: int
    kv_usage: float


class Children(Protocol):
    """The children of one prompt, as `engine.inference.FanOut` has them."""

    @property
    def indices(self) -> tuple[int, ...]:
        """Numbers of the children that are still generated."""

    def take(self) -> list[Generation]:
        """Return the children that finished since the last time."""

    def texts(self) -> Mapping[int, str]:
        """Return what the children that are still generated have so far, by index."""

    def abort(self, index: int) -> None:
        """End a child now; it is still handed out."""

    def close(self) -> None:
        """Abort what is running, and forget what was not handed out."""


class Model(Protocol):
    """A model. One thread calls `fanout`, `adopt`, `step`, abort; any other may call the rest."""

    max_model_len: int
    """The longest prompt plus completion, in tokens."""
    block_size: int
    """Tokens of a block of the prefix cache, in steps of which prompts are found."""

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        """Return the token ids of ``text``; see `engine.prompts.Tokenizer`."""

    def chat_frame(self, *, system: str) -> ChatFrame:
        """Return what stands round the messages of a conversation.

        Raises:
            UserError: the model takes none.
        """

    def fanout(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int = 0
    ) -> Children:
        """Ask for one child per entry of ``sampling``, all from one prompt.

        Args:
            token_ids: the prompt.
            sampling: of each child.
            adapter: version of the adapter that they are sampled from; 0 for the model itself.

        Raises:
            ValueError: the version was not adopted.
        """

    def adopt(self, version: int, folder: Path) -> None:
        """Load a version of the adapter from a folder, between two steps.

        What is under way ends on the version that it began with.

        Raises:
            ValueError: it can't be loaded.
            ModelLost: the engine failed, and can't be loaded again.
        """

    def step(self) -> None:
        """Run the engine for one step.

        Raises:
            ModelLost: the engine fails, and can't be had back.
        """

    def load(self) -> EngineLoad:
        """Return how loaded the engine was in its last step.

        Raises:
            ModelLost: the step under way lasts so long that it will not end.
        """

    def forget(self) -> None:
        """Empty the prefix cache.

        Raises:
            RuntimeError: a request holds some of it.
        """

    def close(self) -> None:
        """Free what it holds."""

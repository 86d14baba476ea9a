"""What a run needs of a decoder, whoever it belongs to."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from engine.core import Generation
from engine.inference.model import Sampling

IsOver = Callable[[str], bool]
"""Whether an answer that begins with this text need not go on."""


class Decoding(Protocol):
    """Calls in, children out; see `Decoder`, which is one."""

    @property
    def in_flight(self) -> int:
        """Children submitted that `completed` has not returned yet."""

    def submit(
        self,
        call: int,
        *,
        iteration: int,
        token_ids: Sequence[int],
        sampling: Sequence[Sampling],
        is_over: IsOver,
        adapter: int = 0,
    ) -> None:
        """Begin to decode the children of a prompt."""

    def adopt(self, version: int, folder: Path) -> None:
        """Let the model load a version of the adapter, for the calls submitted after this."""

    def adopted(self) -> list[tuple[int, float]]:
        """Return the versions loaded since the last time, each with the milliseconds it took."""

    def abort(self, call: int) -> None:
        """End all children of a call; they come from `completed` with what they have."""

    def completed(self) -> list[tuple[int, Generation]]:
        """Return the children that are done since the last time, each with its call."""

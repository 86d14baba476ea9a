"""The children of one prompt, over all engines that they are generated in.

What an engine that failed had begun is generated again in the next one, from its first token and
with the same seed. So each child comes out once, and as it would have.

Does not cover when an engine is entered and left: ``recovery.py``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.core import GIVEN_UP, Generation
from engine.inference.fanout import FanOut
from engine.inference.llm import LanguageModel
from engine.inference.model import Sampling


class SteadyChildren:
    """See the module, and `engine.inference.model.Children`.

    Attributes:
        failures: of engines that it was in.
        is_waiting: whether it is in no engine.
    """

    def __init__(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int
    ) -> None:
        """Wait for an engine; the arguments are those of `LanguageModel.fanout`."""
        self.failures = 0
        self.is_waiting = True
        self._token_ids = token_ids
        self._adapter = adapter
        self._left = dict(enumerate(sampling))  # neither finished nor ended
        self._finished: list[Generation] = []
        self._spent = dict.fromkeys(self._left, 0.0)  # seconds in engines that failed
        self._fan: FanOut | None = None
        self._numbers: tuple[int, ...] = ()  # those of the children in the engine

    @property
    def indices(self) -> tuple[int, ...]:
        """Numbers of the children that are still generated."""
        self._collect()
        return tuple(self._left)

    def enter(self, model: LanguageModel) -> None:
        """Have the children that are left generated.

        Raises:
            ValueError: the engine refuses one of them.
        """
        self.is_waiting = False
        self._numbers = tuple(self._left)
        self._fan = model.fanout(
            token_ids=self._token_ids, sampling=[*self._left.values()], adapter=self._adapter
        )

    def leave(self) -> None:
        """Wait for another engine; what was generated so far of children under way is lost."""
        self._collect()
        spent = {} if self._fan is None else self._fan.seconds()
        for place, seconds in spent.items():
            self._spent[self._numbers[place]] += seconds
        self._fan = None
        self.is_waiting = True

    def give_up(self) -> None:
        """End the children that are left, which no engine has, without an answer."""
        self.is_waiting = True
        for index in [*self._left]:
            self._end(index, reason=GIVEN_UP)

    def take(self) -> list[Generation]:
        """Return the children that finished since the last time."""
        self._collect()
        finished, self._finished = self._finished, []
        return finished

    def texts(self) -> Mapping[int, str]:
        """Return what the children that are still generated have so far, by index."""
        found = {} if self._fan is None else self._fan.texts()
        return {self._numbers[place]: text for place, text in found.items()}

    def abort(self, index: int) -> None:
        """End a child now; it is still handed out."""
        if self._fan is not None:
            self._fan.abort(self._numbers.index(index))
        elif index in self._left:
            self._end(index, reason="abort")

    def close(self) -> None:
        """Abort what is running, and forget what was not handed out."""
        if self._fan is not None:
            self._fan.close()
        self._left.clear()
        self._finished.clear()

    def _collect(self) -> None:
        for each in [] if self._fan is None else self._fan.take():
            index = self._numbers[each.index]
            del self._left[index]
            seconds = each.llm_seconds + self._spent[index]
            self._finished.append(replace(each, index=index, llm_seconds=seconds))

    def _end(self, index: int, *, reason: str) -> None:
        """End a child that is in no engine."""
        del self._left[index]
        self._finished.append(
            Generation(
                index=index,
                text="",
                token_ids=(),
                finish_reason=reason,
                prompt_tokens=0,
                cached_prompt_tokens=0,
                llm_seconds=self._spent[index],
            )
        )

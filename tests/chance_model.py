"""A language model that writes at a pace which chance chooses, one character a token.

What it writes follows from the prompt and the seed. Its step may raise, and it may give a child up.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fault_lists import Fate, Kind
from table_fan import TableFan

from engine.core import Candidate, ChatFrame, Generation, Prompt
from engine.inference import EngineLoad, Sampling
from engine.prompts.chat import Crossover, Repair, Rewrite
from engine.prompts.verbalized import Verbalized

_LIST = re.compile(r"Number of versions: (\d+)\.")


class StepError(RuntimeError):
    """The engine's step fails."""


def digest(*parts: object) -> bytes:
    """Return 32 bytes that follow from ``parts`` alone."""
    return hashlib.sha256(repr(parts).encode()).digest()


def answer(number: int, prompt: str, seed: int) -> str:
    """Return what the model writes for the call of this number: mostly a program of its own."""
    lists = _LIST.search(prompt.rpartition("<turn>")[2])
    if lists is not None:
        return _listed(number, prompt, seed, asked=int(lists[1]))
    return f"call {number}\n```python\n{_program(prompt, seed)}\n```"


def _listed(number: int, prompt: str, seed: int, *, asked: int) -> str:
    """Return a list of programs: as many as are asked for, or fewer, or one more."""
    chance = digest("list", prompt, seed)[0]
    count = asked if chance < 96 else chance % (2 if chance < 160 else asked + 2)
    if not count:
        return f'{{"responses": [], "call": {number}}}'
    entries = [
        json.dumps({"code": _program(prompt, seed, place), "probability": 1 / count})
        for place in range(count)
    ]
    # Nobody asked for the number; it stands in the first line, which no cut leaves out.
    return f'{{"responses": [{{"call": {number},\n' + ",\n".join(entries)[1:] + "]}"


def _program(prompt: str, *chances: int) -> str:
    chance = digest(prompt, *chances)
    value = int.from_bytes(chance[1:5], "big")
    body = f"    y = x\n    return y * {value}"
    if chance[0] < 15:
        body = "    return x *"
    elif chance[0] < 35:
        body = "    return x * 7"
    elif chance[0] < 45:
        body = "    return z"
    return f"def f(x):\n{body}"


class Fan(TableFan):
    """Keeps what it has handed out."""

    def __init__(self, *, taken: list[Generation], **parts: Any) -> None:
        super().__init__(**parts)
        self._taken = taken

    def take(self) -> list[Generation]:
        finished = super().take()
        self._taken += finished
        return finished


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A call as the model was given it.

    Attributes:
        session: in which.
        beside: children that it was writing already.
        taken: the answers that were handed out; none of a session in a process of its own.
    """

    session: int
    prompt: str
    seeds: tuple[int, ...]
    beside: int
    taken: list[Generation]


class Model:
    """The model; the decoder's thread steps it."""

    block_size = 16

    def __init__(
        self,
        *,
        context: int,
        step: float,
        rng: random.Random,
        number: int,
        fate: Fate,
        note: Callable[[Asked], int],
    ) -> None:
        """Begin with nothing to write.

        Args:
            context: tokens that a prompt and its answer may have together.
            step: the most seconds that a step takes.
            rng: chooses the pace.
            number: of the session.
            fate: says when a step raises, and when a child is given up.
            note: told each call; returns its number among those of all sessions.
        """
        self._seconds = step
        self._rng = random.Random(rng.random())  # the decoder's thread uses it
        self._loads = random.Random(rng.random())
        self._number = number
        self._fate = fate
        self._note = note
        self._fans: list[Fan] = []
        self.max_model_len = context
        self.steps = 0

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        return [*map(ord, text)]

    def chat_frame(self, *, system: str) -> ChatFrame:
        return ChatFrame(opening=f"{system}\n", closing="<answer>", turn="<turn>")

    def load(self) -> EngineLoad:
        chance = self._loads
        return EngineLoad(waiting=chance.choice([0, 0, 0, 2]), kv_usage=chance.random())

    def adopt(self, version: int, folder: Path) -> None:
        raise ValueError("a stand-in takes no adapter")

    def fanout(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int = 0
    ) -> Fan:
        prompt, seeds = "".join(map(chr, token_ids)), tuple(each.seed for each in sampling)
        beside, taken = sum(len(each.indices) for each in self._fans), list[Generation]()
        call = self._note(
            Asked(session=self._number, prompt=prompt, seeds=seeds, beside=beside, taken=taken)
        )
        fan = Fan(
            prompt_tokens=len(token_ids),
            answers=[answer(call, prompt, seed) for seed in seeds],
            encode=self.encode,
            taken=taken,
        )
        self._fans.append(fan)
        return fan

    def step(self) -> None:
        """Let each child write some lines or none; the step takes a second of the engine's."""
        if self._seconds:
            time.sleep(self._rng.random() * self._seconds)
        self._fans = [fan for fan in self._fans if fan.indices]
        running = sum(len(fan.indices) for fan in self._fans)
        if running and self._fate.befalls(Kind.STEP):
            raise StepError("the engine has failed")
        self.steps += running > 0
        for fan in self._fans:
            fan.note_seconds(1 / running)
            for index in fan.indices:
                if self._fate.befalls(Kind.ABORT):
                    fan.abort(index)
                elif self._rng.random() < 0.7:
                    fan.write(index, lines=self._rng.randint(1, 3))


class Doubtful(Rewrite):
    """Calls some beginnings of answers complete, whatever they are."""

    share = 0.0

    def is_complete(self, *, parent: Candidate, prompt: Prompt, text: str) -> bool:
        is_complete = super().is_complete(parent=parent, prompt=prompt, text=text)
        return is_complete or digest(text)[0] < 256 * self.share


class DoubtfulCrossover(Doubtful):
    """Asks for what a crossover does."""

    words_for_two = Crossover.words_for_two


class DoubtfulRepair(Doubtful):
    """Asks for what a repair does."""

    words_for_two = Repair.words_for_two


OPERATORS = {
    "rewrite": Doubtful,
    "crossover": DoubtfulCrossover,
    "repair": DoubtfulRepair,
    "verbalized": Verbalized,
}

"""A tokenizer for tests: real enough to tell where tokens lie, without a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from engine.core import ChatFrame, UserError
from engine.settings import PromptSettings

STABLE = PromptSettings(
    layout="stable", history_tokens=1000, growth_tokens=500, align=False, pending=True
)
END = "<end>"


class Words:
    """Like a real one: a word's token holds the space before it, and a special token is one.

    Attributes:
        encoded: how often each text was encoded.
    """

    _TOKEN = re.compile(r"<end>|<user>|<model>| ?[^\W_]+|_| ?[^\s\w]|\s+(?!\S)|\s")

    def __init__(self, max_model_len: int = 10_000) -> None:
        self.max_model_len = max_model_len
        self.block_size = 16
        self.encoded: Counter[str] = Counter()
        self._words: list[str] = []
        self._numbers: dict[str, int] = {}

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        self.encoded[text] += 1
        words = self._TOKEN.findall(text)
        assert "".join(words) == text
        for word in words:
            if word not in self._numbers:
                self._numbers[word] = len(self._words)
                self._words.append(word)
        return [self._numbers[word] for word in words]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self._words[each] for each in ids)

    def chat_frame(self, *, system: str) -> ChatFrame:
        return ChatFrame(
            opening=f"{system}{END}\n<user>", closing=f"{END}\n<model>", turn=f"{END}\n<user>"
        )


class NoChat(Words):
    """The tokenizer of a model that has no chat template."""

    def chat_frame(self, *, system: str) -> ChatFrame:
        raise UserError("no chat template")

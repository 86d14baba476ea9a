"""The children of one prompt where no model is: answers known beforehand, written bit by bit.

`TableFan` has the face of ``engine.inference.FanOut``, so that the real `Decoder` runs it; a test's
model says when which child goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from engine.core import Generation


class TableFan:
    """K children that write the answers they were given."""

    def __init__(
        self, *, prompt_tokens: int, answers: Sequence[str], encode: Callable[[str], list[int]]
    ) -> None:
        """Begin with nothing written.

        Args:
            prompt_tokens: of the prompt; half of them count as cached.
            answers: of each child.
            encode: the model's tokenizer.
        """
        self._prompt_tokens = prompt_tokens
        self._answers = answers
        self._encode = encode
        self._written = dict.fromkeys(range(len(answers)), 0)  # lines of those that still write
        self._seconds = [0.0] * len(answers)
        self._finished: list[Generation] = []

    @property
    def indices(self) -> tuple[int, ...]:
        return tuple(self._written)

    def texts(self) -> Mapping[int, str]:
        return {index: self._text(index) for index in self._written}

    def take(self) -> list[Generation]:
        finished, self._finished = self._finished, []
        return finished

    def abort(self, index: int) -> None:
        if index in self._written:
            self._finish(index, finish_reason="abort")

    def close(self) -> None:
        self._written.clear()
        self._finished.clear()

    # What a test's model does in a step.

    def write(self, index: int, *, lines: int) -> None:
        """Have a child write up to ``lines`` more lines, and finish if that was the last one."""
        self._written[index] += lines
        if self._written[index] >= len(self._answers[index].splitlines()):
            self._finish(index, finish_reason="stop")

    def note_seconds(self, seconds: float) -> None:
        """Add each running child's share of a step, in seconds."""
        for index in self._written:
            self._seconds[index] += seconds

    def _text(self, index: int) -> str:
        return "".join(self._answers[index].splitlines(keepends=True)[: self._written[index]])

    def _finish(self, index: int, *, finish_reason: str) -> None:
        text = self._text(index)
        del self._written[index]
        tokens = self._prompt_tokens if text else 0  # as vLLM: nothing before the first token
        self._finished.append(
            Generation(
                index=index,
                text=text,
                token_ids=tuple(self._encode(text)),
                finish_reason=finish_reason,
                prompt_tokens=tokens,
                cached_prompt_tokens=tokens // 2,
                llm_seconds=self._seconds[index],
            )
        )

"""Expert iteration, the control: imitate the best children so far.

The model itself, not the last adapter, is fitted to them each time (as in SOAR), so that errors do
not add up. New valid children count, each program once, the best first.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.learning.group import Answer, Group, Member
from engine.learning.packing import Tokens

_MOST = 128  # examples
_MOST_OF_PROMPT = 4  # so that no parent's children are most of them


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A child worth imitating.

    Attributes:
        key: of its program.
        worth: reward, then gain; the highest is the best.
        answers: that made it.
    """

    key: str
    worth: tuple[float, float]
    answers: tuple[Answer, ...]

    @property
    def prompts(self) -> tuple[Tokens, ...]:
        """The prompts of its answers."""
        return tuple(answer.sampled_from.prompt_ids for answer in self.answers)


class Examples:
    """The best children so far, the best first."""

    def __init__(self) -> None:
        self._kept: tuple[Example, ...] = ()

    def __iter__(self) -> Iterator[Example]:
        """Return them in order."""
        return iter(self._kept)

    def take(self, groups: Iterable[Group]) -> None:
        """Keep the best of what is kept and the groups' new valid children."""
        found = {example.key: example for example in self._kept}
        for group in groups:
            for member in group.members:
                example = _example(member)
                if example is not None:
                    found.setdefault(example.key, example)
        self.restore(found.values())

    def restore(self, examples: Iterable[Example]) -> None:
        """Keep the best of these."""
        kept: list[Example] = []
        of_prompt: Counter[tuple[Tokens, ...]] = Counter()
        for example in sorted(examples, key=lambda example: example.worth, reverse=True):
            if of_prompt[example.prompts] < _MOST_OF_PROMPT and len(kept) < _MOST:
                of_prompt[example.prompts] += 1
                kept.append(example)
        self._kept = tuple(kept)


def _example(member: Member) -> Example | None:
    if not member.is_new or member.key is None or not member.answers:
        return None
    gain = float("-inf") if member.gain is None else member.gain
    return Example(key=member.key, worth=(member.reward, gain), answers=member.answers)

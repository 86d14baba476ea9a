"""What a fan-out saves over separate requests, measured on the spot."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.api.engine import Engine, fanout
from engine.api.fan import Cost, Fan
from engine.core import Generation
from engine.inference import Sampling


@dataclass(frozen=True, kw_only=True, slots=True)
class Saving:
    """Answers, and what they cost together and apart.

    Attributes:
        answers: of the fan-out, in the order in which they finished.
        together: cost of the fan-out, with an empty prefix cache before it.
        apart: cost of the same requests, each of which computes the whole prompt. They are at the
            model at the same time too, as a server without a prefix cache would have them.
    """

    answers: tuple[Generation, ...]
    together: Cost
    apart: Cost

    def __str__(self) -> str:
        """Return it in a line."""
        ours, theirs = self.together, self.apart
        return (
            f"prompt tokens computed {ours.computed_prompt_tokens} instead of "
            f"{theirs.computed_prompt_tokens} "
            f"({_times(theirs.computed_prompt_tokens, ours.computed_prompt_tokens)}), "
            f"seconds {ours.seconds:.2f} instead of {theirs.seconds:.2f} "
            f"({_times(theirs.seconds, ours.seconds)})"
        )


def measured(prompt: str, sampling: Sequence[Sampling], *, engine: Engine) -> Saving:
    """Answer a prompt twice: by a fan-out, and by requests that read no prefix cache.

    The second time costs what the first one saves; leave it away where nobody wants to know.
    """
    together = _all(prompt, sampling, engine)
    apart = _all(prompt, [replace(each, reads_cache=False) for each in sampling], engine)
    return Saving(answers=together[0], together=together[1], apart=apart[1])


def _all(
    prompt: str, sampling: Sequence[Sampling], engine: Engine
) -> tuple[tuple[Generation, ...], Cost]:
    engine.model.forget()
    fan: Fan = fanout(prompt, sampling, engine=engine)
    answers = tuple(fan)
    return answers, fan.cost


def _times(theirs: float, ours: float) -> str:
    return f"{theirs / ours:.1f} times" if ours else "-"

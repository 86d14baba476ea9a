"""What prompts say of how to go about a problem: the group ``guidance``."""

from pydantic import Field

from engine.section import MOST_TOKENS, Flag, Section, Whole, section

GUIDED = ("rewrite", "diff", "crossover", "repair")
"""The operators whose requests show guidance; all others go on as they are."""


@section
class GuidanceSettings(Section):
    """Whether the model rewrites what it is told of how to go about a problem.

    See ``engine.guidance``.

    Attributes:
        enabled: whether prompts have guidance, and choices by rule ``explore`` or ``first`` have
            it rewritten.
        tokens: the most that it may have.
        answer_tokens: the most tokens of an answer that rewrites it.
    """

    # With values of their own, as settings of runs from before them have none.
    enabled: Flag = False
    tokens: Whole = Field(default=512, ge=128, le=MOST_TOKENS)
    answer_tokens: Whole = Field(default=512, ge=128, le=MOST_TOKENS)

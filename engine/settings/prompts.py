"""What prompts show: the group ``prompts``."""

from typing import Annotated, Literal

from pydantic import Field

from engine.section import Flag, Section, Tokens, Whole, section

Layout = Literal["classic", "stable", "transcript", "ancestors"]
Few = Annotated[Whole, Field(ge=0, le=64)]


@section
class PromptSettings(Section):
    """What prompts show, and in which order.

    Attributes:
        layout: the order of a prompt's blocks; see ``engine.prompts.layouts``.
        history_tokens: tokens of the other programs that are shown; 0 for none. Where the history
            grows at its end, what is left of it after it was compacted. None for a quarter of
            ``model.max_model_len``.
        growth_tokens: tokens by which it then grows before it is compacted again; see
            ``engine.search.window`` for how much pays. None for an eighth of
            ``model.max_model_len``.
        align: fill prompts up to a block of the prefix cache, but for transcripts; see
            ``engine.prompts.layouts``.
        pending: whether a call that begins on a guess shows the programs of its island that have no
            verdict yet, beside those that have.
        ancestors: of the parent that layout ``ancestors`` shows, the nearest ones.
    """

    layout: Layout
    history_tokens: Tokens
    growth_tokens: Tokens
    align: Flag
    # With values of their own, as settings of runs from before them have none.
    pending: Flag = True
    ancestors: Few = 3

    @property
    def shows_pending(self) -> bool:
        """Whether a prompt with other programs shows those without a verdict too."""
        return self.pending and self.history_tokens > 0

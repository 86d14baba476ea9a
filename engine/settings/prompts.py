"""What prompts show: the group ``prompts``."""

from typing import Literal

from engine.section import Flag, Section, Tokens, section

Layout = Literal["classic", "stable", "transcript"]


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
    """

    layout: Layout
    history_tokens: Tokens
    growth_tokens: Tokens
    align: Flag

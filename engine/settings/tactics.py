"""What the model is asked about the search as a whole: the group ``tactics``."""

from typing import Literal

from engine.section import Count, Section, Share, Tokens, section


@section
class TacticsSettings(Section):
    """When the model is asked what to try, and in how many prompts that stands.

    Attributes:
        when: ``none``; ``stagnation``, once few children are the best so far, as AdaEvolve's
            meta-guidance, for calls that change the best program; or ``periodic``, as
            ShinkaEvolve's meta notes.
        window: children that ``stagnation`` looks back on; of ``periodic``, those between two.
        below: share of them, below which the search stagnates.
        ideas: how many are asked for.
        uses: calls that each idea of a stagnation stands in; those of ``periodic`` stand until the
            next ones come.
        tokens: of the answer, at most.
    """

    # With values of their own, as settings of runs from before them have none.
    when: Literal["none", "stagnation", "periodic"] = "none"
    window: Count = 10
    below: Share = 0.12
    ideas: Count = 3
    uses: Count = 2
    tokens: Tokens = 512

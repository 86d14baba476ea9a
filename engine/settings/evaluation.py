"""How candidates are evaluated: the group ``evaluation``."""

from pydantic import Field

from engine.section import Flag, Number, Section, Whole, section

MOST_WORKERS = 1024
MOST_SCORES = 1 << 20
FEWEST_SCORES = 16
"""Scores without which a cheap stage has no threshold."""


@section
class CascadeSettings(Section):
    """How a problem's cheap stages screen candidates; see ``engine.evaluation.screen``.

    Attributes:
        keep: share of the candidates at a stage that goes on; with 1 no cheap stage runs.
        audit: share of the others that is fully evaluated anyway.
        correlation_min: rank correlation with the full score below which a stage is switched off.
        window: how many candidates back the threshold looks; the correlation looks at this many
            fully evaluated ones times ``engine.evaluation.screen.WINDOWS``, once for each window.
    """

    keep: Number = Field(gt=0, le=1)
    audit: Number = Field(ge=0.001, le=1)
    correlation_min: Number = Field(ge=-1, le=1)
    window: Whole = Field(ge=FEWEST_SCORES, le=MOST_SCORES)


@section
class EvaluationSettings(Section):
    """How candidates are evaluated.

    Attributes:
        workers: processes that run candidates; None for half of the cores, and for three quarters
            beside a GPU.
        strict: whether a wall of the sandbox that can't be had here is an error.
        cascade: how cheap stages screen candidates.
    """

    workers: Whole = Field(ge=1, le=MOST_WORKERS)
    strict: Flag
    cascade: CascadeSettings

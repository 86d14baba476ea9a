"""What evaluators do that have nothing to do: the group ``fill``."""

from typing import Literal

from pydantic import Field

from engine.section import Count, Section, Whole, section

Maker = Literal["improvement", "mutation", "tuning"]


@section
class FillSettings(Section):
    """Which programs are made without the model for idle evaluators; see ``engine.fill``.

    Attributes:
        makers: what makes them; none for evaluators that wait.
        parents: how many of an island's best programs are varied.
        answers: the most programs that one program's tuning tries.
        hops: the most times that one program's solution is perturbed and improved.
        model_cores: whether fills also run on the cores of a model that computes on the CPU, while
            it waits.
    """

    # With values of their own, as settings of runs from before them have none.
    makers: tuple[Maker, ...] = ()
    parents: Count = 8
    answers: Whole = Field(default=2000, ge=10)
    hops: Count = 300
    model_cores: bool = True

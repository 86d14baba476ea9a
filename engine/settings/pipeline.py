"""What may go on at the same time: the group ``pipeline``."""

from engine.section import Count, Flag, Section, section


@section
class PipelineSettings(Section):
    """What may go on at the same time; see ``engine.loop``.

    Attributes:
        overlap: whether islands decode while others' candidates are evaluated; if not, one call
            is generated, then its candidates are evaluated, then the next call is asked for.
        speculate: whether an island's next call begins before the verdicts that its parent depends
            on.
        ahead: the most calls of an island that may have begun so at once.
        children: the most children at the model; None for as many as vLLM runs at once.
        candidates: the most candidates at the evaluators, above which no call is asked for; None
            for a number that follows from the evaluators'.
        adaptive: whether both limits follow what is waiting, and memory, up to these numbers.
        end_early: whether a child is ended once its program is complete.
    """

    overlap: Flag
    speculate: Flag
    ahead: Count
    children: Count | None
    candidates: Count | None
    adaptive: Flag
    end_early: Flag

"""What the search asks for next.

Does not cover the choosing: ``engine.search``.
"""

from dataclasses import dataclass

from engine.core.program import Attempt, Candidate, Pending


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """A step of a parent's lineage: what was asked about a program, and the model's answer.

    The answer became the next turn's candidate, or the parent itself.

    Attributes:
        candidate: the program that was asked about.
        operator: name of the operator that asked.
        failures: the failed attempts that were shown with it.
        answer: the completion.
        answer_ids: its tokens as they were sampled; encoding its text may give other ones.
        partner: the program that it was to be combined with.
        repairs: the failed attempt that was to be corrected.
    """

    candidate: Candidate
    operator: str
    failures: tuple[Attempt, ...]
    answer: str
    answer_ids: tuple[int, ...]
    partner: Candidate | None = None
    repairs: Attempt | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """What the search asks for next: K children of one parent.

    Attributes:
        iteration: counts from 0 over all islands; all randomness of the iteration derives from it,
            the island and the seed.
        parent: the program to change.
        history: the programs to be shown beside the parent, in the order to show them.
        operator: name of the operator that makes the change.
        k: number of children.
        seed: for the operator's own choices and the sampling of the children.
        failures: the last failed attempts at changing this parent, oldest first.
        lineage: how the parent came to be, from the first program on.
        compactions: how often the island's history was compacted before this proposal.
        island: for which it is; the parent and all that is shown are of its population.
        pending: the programs of the island whose verdicts are not in, in the order of their
            iterations and of the children in them; none in a run that shows no other programs.
        partner: of a crossover: the program to combine the parent with.
        repairs: of a repair: the failed attempt at changing the parent that is to be corrected;
            it is not among the failures.
        rule: by which the parent was chosen, as the parent policy names it; ``given`` where the
            search was told whom to take.
        tactics: what the model said that this call should try; empty for nothing.
        hint: what somebody who watches the run has the prompt say besides; empty for nothing.
        guidance: what the prompt says besides of how to go about it, which a model wrote and other
            programs have tested (``engine.guidance``); empty for nothing.
    """

    iteration: int
    parent: Candidate
    history: tuple[Candidate, ...]
    operator: str
    k: int
    seed: int
    failures: tuple[Attempt, ...] = ()
    lineage: tuple[Turn, ...] = ()
    compactions: int = 0
    island: int = 0
    pending: tuple[Pending, ...] = ()
    partner: Candidate | None = None
    repairs: Attempt | None = None
    rule: str = "given"
    hint: str = ""
    guidance: str = ""
    tactics: str = ""

    @property
    def partner_id(self) -> str | None:
        """Id of the partner, if there is one."""
        return None if self.partner is None else self.partner.id

    @property
    def repairs_id(self) -> str | None:
        """Id of the attempt to be corrected, if there is one."""
        return None if self.repairs is None else self.repairs.id

"""The contract of the policies for the width: how many children an island's next call asks for.

A policy belongs to one island. Its state is a fold over the outcomes that it was told, in the
order of their iterations: no clock, no generator that is carried on. So a policy that is told
what a log holds goes on as the one that wrote the log.

Covers: the interface, and what an iteration says of its width. Does not cover any policy, or how an
outcome is measured.
"""

from dataclasses import dataclass

from engine.registry import Policies, Policy
from engine.section import section


@dataclass(frozen=True, kw_only=True, slots=True)
class IterationOutcome:
    """What one iteration of an island brought and cost; its verdicts are all in.

    Attributes:
        island: whose iteration it was.
        iteration: its number, from 0; an island's own have gaps where others' are.
        parent: id of the program that was changed.
        children: how many were generated.
        improved: those of them that replaced an elite of the island's archive, each compared with
            the archive as it was before the iteration. Without an archive those that beat the best
            program that the island began with or made before.
        model_seconds: of the engine: of each of its steps' wall seconds the share of the call's
            children among all requests in the step.
        computed_tokens: prompt tokens that were computed, over all children.
        repeated_tokens: those of them that each child computed for itself: all but those of the
            child that computed most.
        decode_steps: tokens of the longest child.
        generated_tokens: tokens of all children.
        evaluation_seconds: what its candidates took, summed, over the number of evaluators.
    """

    island: int
    iteration: int
    parent: str
    children: int
    improved: int
    model_seconds: float
    computed_tokens: int
    repeated_tokens: int
    decode_steps: int
    generated_tokens: int
    evaluation_seconds: float


class WidthPolicy:
    """How many children each call of one island asks for."""

    def k(self, *, iteration: int) -> int:
        """Return K for an iteration, given what was told; asking again changes nothing."""
        raise NotImplementedError

    def tell(self, outcome: IterationOutcome) -> None:
        """Take in what an iteration brought, once, in the order of the island's iterations.

        A call that was given up, as a wrong guess of the next parent is, is not told. A policy that
        has no method of its own learns nothing.
        """


@section
class WidthSettings(Policy):
    """A policy for the width as it is configured, under ``width``."""

    def make(self, *, k: int, seed: int, island: int) -> WidthPolicy:
        """Return the policy of an island that was told nothing.

        Args:
            k: ``search.k``.
            seed: the run's.
            island: the island's number.
        """
        raise NotImplementedError


WIDTHS = Policies(WidthSettings, package=__package__, group="brood.widths")

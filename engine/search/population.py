"""The programs that a run knows, and which new ones are worth an evaluation.

Covers: refusing children that do not parse, would fail on a name, change nothing or stand in the
population already. Does not cover islands or an archive: there is one population.
"""

from __future__ import annotations

from engine import program as programs
from engine.core import Attempt, Candidate, Evaluation, Failure, Refusal


class Population:
    """All programs admitted so far: the valid ones as candidates, those that failed as attempts.

    A program that a cheap stage screened out is neither: it ran, and was merely not among the best.

    Both keep the order in which they were admitted, whatever the order of their scores'
    arrival, so that what is chosen from them does not depend on timing.
    """

    def __init__(self) -> None:
        self._programs: dict[str, str] = {}
        self._iterations: dict[str, int] = {}
        self._parents: dict[str, str] = {}
        self._scores: dict[str, float | None] = {}
        self._failed: dict[str, Evaluation] = {}
        self._keys: set[str] = set()

    def admit(
        self, candidate_id: str, program: str, *, iteration: int, parent: str | None = None
    ) -> None:
        """Take a program in, to be scored later; admitting an id again changes nothing."""
        if candidate_id in self._programs:
            return
        self._programs[candidate_id] = program
        self._iterations[candidate_id] = iteration
        if parent is not None:
            self._parents[candidate_id] = parent
        tree = programs.parse(program)
        if tree is not None:
            self._keys.add(programs.program_key(tree))

    def tell(self, candidate_id: str, evaluation: Evaluation) -> None:
        """Record the verdict on an admitted program; the first one told counts.

        Raises:
            KeyError: no program was admitted under this id.
        """
        if candidate_id not in self._programs:
            raise KeyError(f"candidate {candidate_id} was never admitted")
        if candidate_id in self._scores:
            return
        self._scores[candidate_id] = evaluation.score
        if evaluation.score is None and evaluation.failure is not Failure.SCREENED:
            self._failed[candidate_id] = evaluation

    def refusal(self, program: str | None, *, parent: Candidate) -> Refusal | None:
        """Return why a child would not be worth an evaluation, or None if it is."""
        tree = programs.parse(program) if program is not None else None
        if program is None or tree is None:
            return Refusal.UNPARSED
        key = programs.program_key(tree)
        parent_tree = programs.parse(parent.program)
        if parent_tree is not None and key == programs.program_key(parent_tree):
            return Refusal.UNCHANGED
        if key in self._keys:
            return Refusal.DUPLICATE
        if programs.undefined_names(program, tree):
            return Refusal.UNDEFINED
        return None

    def candidates(self, *, before: int | None = None) -> list[Candidate]:
        """Return the programs with a score, in the order they were admitted.

        Args:
            before: leave out those of this iteration and later ones.
        """
        return [
            Candidate(id=candidate_id, program=program, score=score)
            for candidate_id, program in self._programs.items()
            if (score := self._scores.get(candidate_id)) is not None
            and (before is None or self._iterations[candidate_id] < before)
        ]

    def failures(self, parent: str, *, before: int, most: int) -> tuple[Attempt, ...]:
        """Return the last failed attempts at changing a program, oldest first.

        Args:
            parent: id of the program.
            before: leave out those of this iteration and later ones.
            most: how many.
        """
        failed = [
            Attempt(program=program, evaluation=self._failed[candidate_id])
            for candidate_id, program in self._programs.items()
            if self._parents.get(candidate_id) == parent
            and candidate_id in self._failed
            and self._iterations[candidate_id] < before
        ]
        return tuple(failed[max(0, len(failed) - most) :])

"""The programs that a run knows, and which new ones are worth an evaluation.

Covers: refusing children that do not parse, would fail on a name, change nothing or stand in the
population already. Does not cover islands or an archive: there is one population.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from engine import program as programs
from engine.core import Attempt, Candidate, Evaluation, Failure, Refusal, Turn

FIRST_ITERATION = -1
"""Number under which the programs stand that a run begins with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A program as it is admitted, and how it came to be.

    Attributes:
        id: the candidate's.
        program: its text.
        iteration: that generated it; `FIRST_ITERATION` for the initial program.
        parent: id of the program that it was made from; None for the initial program.
        operator: name of the operator that asked for it; empty for the initial program.
        answer: the completion that it was read from; empty for the initial program.
        answer_ids: the same as sampled.
    """

    id: str
    program: str
    iteration: int = FIRST_ITERATION
    parent: str | None = None
    operator: str = ""
    answer: str = ""
    answer_ids: tuple[int, ...] = ()


class Population:
    """All programs admitted so far: the valid ones as candidates, those that failed as attempts.

    A program that a cheap stage screened out is neither: it ran, and was merely not among the best.

    Both keep the order in which they were admitted, whatever the order of their scores'
    arrival, so that what is chosen from them does not depend on timing.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._children: defaultdict[str, list[Entry]] = defaultdict(list)  # by their parent's id
        self._told: set[str] = set()
        self._candidates: dict[str, Candidate] = {}
        self._failed: dict[str, Evaluation] = {}
        self._keys: set[str] = set()

    def admit(self, entry: Entry) -> None:
        """Take a program in, to be scored later; admitting an id again changes nothing."""
        if entry.id in self._entries:
            return
        self._entries[entry.id] = entry
        if entry.parent is not None:
            self._children[entry.parent].append(entry)
        tree = programs.parse(entry.program)
        if tree is not None:
            self._keys.add(programs.program_key(tree))

    def tell(self, candidate_id: str, evaluation: Evaluation) -> None:
        """Record the verdict on an admitted program; the first one told counts.

        Raises:
            KeyError: no program was admitted under this id.
        """
        if candidate_id not in self._entries:
            raise KeyError(f"candidate {candidate_id} was never admitted")
        if candidate_id in self._told:
            return
        self._told.add(candidate_id)
        if evaluation.score is not None:
            self._candidates[candidate_id] = Candidate(
                id=candidate_id,
                program=self._entries[candidate_id].program,
                score=evaluation.score,
            )
        elif evaluation.failure is not Failure.SCREENED:
            self._failed[candidate_id] = evaluation

    def iteration_of(self, candidate_id: str) -> int:
        """Return the iteration that generated an admitted program."""
        return self._entries[candidate_id].iteration

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
            candidate
            for entry in self._entries.values()
            if (before is None or entry.iteration < before)
            and (candidate := self._candidates.get(entry.id)) is not None
        ]

    def candidate(self, candidate_id: str) -> Candidate:
        """Return one of the programs with a score.

        Raises:
            ValueError: there is none of this id.
        """
        if candidate_id not in self._candidates:
            raise ValueError(f"no valid candidate {candidate_id!r} was told")
        return self._candidates[candidate_id]

    def arrivals(self, *, first: int, before: int) -> Iterator[tuple[int, Candidate]]:
        """Yield the candidates of the iterations from ``first`` to ``before``, with their number.

        In the order they were admitted.
        """
        for entry in self._entries.values():
            if first <= entry.iteration < before:
                candidate = self._candidates.get(entry.id)
                if candidate is not None:
                    yield entry.iteration, candidate

    def failures(self, parent: str, *, before: int, most: int) -> tuple[Attempt, ...]:
        """Return the last failed attempts at changing a program, oldest first.

        Args:
            parent: id of the program.
            before: leave out those of this iteration and later ones.
            most: how many.
        """
        failed = [
            Attempt(program=entry.program, evaluation=self._failed[entry.id])
            for entry in self._children.get(parent, ())
            if entry.id in self._failed and entry.iteration < before
        ]
        return tuple(failed[max(0, len(failed) - most) :])

    def lineage(self, candidate_id: str, *, failures: int) -> tuple[Turn, ...]:
        """Return the steps that led to a candidate, from the first program on.

        Args:
            candidate_id: of the candidate, which the last step led to.
            failures: how many failed attempts each step showed, at most.
        """
        turns = []
        entry = self._entries[candidate_id]
        while entry.parent is not None:
            turns.append(
                Turn(
                    candidate=self._candidates[entry.parent],  # it was chosen: it has a score
                    operator=entry.operator,
                    failures=self.failures(entry.parent, before=entry.iteration, most=failures),
                    answer=entry.answer,
                    answer_ids=entry.answer_ids,
                )
            )
            entry = self._entries[entry.parent]
        return tuple(reversed(turns))

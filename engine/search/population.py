"""The programs that a run knows, and which new ones are worth an evaluation.

Covers: refusing children that do not parse, would fail on a name, change nothing or stand in the
population already, on whatever island; what failed at changing a program; how one came to be. Does
not cover who may be a parent where: ``engine.search.island``.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from dataclasses import dataclass

from engine import program as programs
from engine.core import Attempt, Candidate, Evaluation, Failure, Refusal, Turn

FIRST_ITERATION = -1
"""Number under which the programs stand that a run begins with."""

Place = tuple[int, int, str]
"""Iteration, number among its children, and id: the order of programs, whenever they finished."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A program as it is admitted, and how it came to be.

    Attributes:
        id: the candidate's.
        program: its text.
        iteration: that generated it; `FIRST_ITERATION` for the initial program.
        index: which of the iteration's children it is.
        island: whose iteration it was.
        islands: that begin with it, of a program that the run begins with; None for all of them.
        parent: id of the program that it was made from; None for the initial program.
        operator: name of the operator that asked for it; empty for the initial program.
        answer: the completion that it was read from; empty for the initial program.
        answer_ids: the same as sampled.
    """

    id: str
    program: str
    iteration: int = FIRST_ITERATION
    index: int = 0
    island: int = 0
    islands: tuple[int, ...] | None = None
    parent: str | None = None
    operator: str = ""
    answer: str = ""
    answer_ids: tuple[int, ...] = ()

    @property
    def place(self) -> Place:
        """Where it stands among the others."""
        return self.iteration, self.index, self.id


class Population:
    """All programs admitted so far: the valid ones as candidates, those that failed as attempts.

    A program that a cheap stage screened out is neither: it ran, and was merely not among the best.

    What it answers depends on what was admitted and told, not on the order.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._made: defaultdict[tuple[int, str], list[Entry]] = defaultdict(list)
        """By island and parent, in the order of their places."""
        self._told: set[str] = set()
        self._candidates: dict[str, Candidate] = {}
        self._failed: dict[str, Evaluation] = {}
        self._keys: set[str] = set()

    def admit(self, entry: Entry) -> bool:
        """Take a program in, to be scored later; return whether its id is new.

        Admitting an id again changes nothing.
        """
        if entry.id in self._entries:
            return False
        self._entries[entry.id] = entry
        if entry.parent is not None:
            siblings = self._made[entry.island, entry.parent]
            bisect.insort(siblings, entry, key=lambda each: each.place)
        tree = programs.parse(entry.program)
        if tree is not None:
            self._keys.add(programs.program_key(tree))
        return True

    def tell(self, candidate_id: str, evaluation: Evaluation) -> bool:
        """Record the verdict on an admitted program; return whether it is the first, which counts.

        Raises:
            KeyError: no program was admitted under this id.
        """
        if candidate_id not in self._entries:
            raise KeyError(f"candidate {candidate_id} was never admitted")
        if candidate_id in self._told:
            return False
        self._told.add(candidate_id)
        if evaluation.score is not None:
            self._candidates[candidate_id] = Candidate(
                id=candidate_id,
                program=self._entries[candidate_id].program,
                score=evaluation.score,
            )
        elif evaluation.failure is not Failure.SCREENED:
            self._failed[candidate_id] = evaluation
        return True

    def entry(self, candidate_id: str) -> Entry:
        """Return an admitted program.

        Raises:
            KeyError: there is none of this id.
        """
        return self._entries[candidate_id]

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

    def candidates(self) -> list[Candidate]:
        """Return the programs with a score, in the order of their places."""
        ids = sorted(self._candidates, key=lambda each: self._entries[each].place)
        return [self._candidates[each] for each in ids]

    def candidate(self, candidate_id: str) -> Candidate:
        """Return one of the programs with a score.

        Raises:
            ValueError: there is none of this id.
        """
        if candidate_id not in self._candidates:
            raise ValueError(f"no valid candidate {candidate_id!r} was told")
        return self._candidates[candidate_id]

    def failures(
        self, parent: str, *, island: int, most: int, before: int | None = None
    ) -> tuple[Attempt, ...]:
        """Return the last failed attempts of an island at changing a program, oldest first.

        Args:
            parent: id of the program.
            island: whose attempts.
            most: how many.
            before: leave out those of this iteration and later ones.
        """
        failed: list[Attempt] = []
        for entry in reversed(self._made.get((island, parent), ())):
            if len(failed) == most:
                break
            evaluation = self._failed.get(entry.id)
            if evaluation is not None and (before is None or entry.iteration < before):
                failed.append(Attempt(program=entry.program, evaluation=evaluation))
        return tuple(reversed(failed))

    def lineage(self, candidate_id: str, *, failures: int) -> tuple[Turn, ...]:
        """Return the steps that led to a candidate, from the first program on.

        Args:
            candidate_id: of the candidate, which the last step led to.
            failures: how many failed attempts each step showed, at most: the last ones before it.
        """
        turns = []
        entry = self._entries[candidate_id]
        while entry.parent is not None:
            attempts = self.failures(
                entry.parent, island=entry.island, most=failures, before=entry.iteration
            )
            turns.append(
                Turn(
                    candidate=self._candidates[entry.parent],  # it was chosen: it has a score
                    operator=entry.operator,
                    failures=attempts,
                    answer=entry.answer,
                    answer_ids=entry.answer_ids,
                )
            )
            entry = self._entries[entry.parent]
        return tuple(reversed(turns))

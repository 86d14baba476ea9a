"""The programs that a run knows, and which new ones are worth an evaluation.

Covers: refusing children that do not parse, would fail on a name, change nothing or stand in the
population already, on whatever island; what failed at changing a program; how one came to be. Does
not cover who may be a parent where: ``engine.search.island``.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from engine import program as programs
from engine.core import Attempt, Candidate, Evaluation, Failure, Refusal, Turn
from engine.search.operators import REPAIR

FIRST_ITERATION = -1
"""Number under which the programs stand that a run begins with."""
RECENT = 16
"""Failed attempts of an island, the last ones, among which one to repair is looked for."""

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
        answer: the completion that it was read from; empty for the initial program, and where the
            completion is another child's too and was recorded with that.
        answer_ids: the same as sampled.
        partner: id of the program that the parent was to be combined with.
        repairs: id of the failed attempt that it was to correct.
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
    partner: str | None = None
    repairs: str | None = None

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
        self._broken: defaultdict[int, list[Place]] = defaultdict(list)
        """By island, of the failed attempts that may be repaired once, in their order."""
        self._repaired: set[str] = set()
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
            entry = self._entries[candidate_id]
            if entry.parent is not None and entry.operator != REPAIR:
                bisect.insort(self._broken[entry.island], entry.place)
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

    def attempt(self, candidate_id: str) -> Attempt:
        """Return a program that failed, with its verdict.

        Raises:
            ValueError: no failure was told of this id.
        """
        if candidate_id not in self._failed:
            raise ValueError(f"no failure of {candidate_id!r} was told")
        return Attempt(
            id=candidate_id,
            program=self._entries[candidate_id].program,
            evaluation=self._failed[candidate_id],
        )

    def begin_repair(self, candidate_id: str) -> None:
        """Take in that a call is to correct a failed attempt: it is not offered again."""
        self._repaired.add(candidate_id)

    def broken(self, *, island: int, but: Collection[str] = ()) -> str | None:
        """Return the last failed attempt of an island that no call was to correct yet.

        One that was made to correct another is not offered, and none that is older than the last
        `RECENT` ones.

        Args:
            island: whose attempts.
            but: ids that are left out.

        Returns:
            Its id; None if there is none.
        """
        for *_, name in reversed(self._broken[island][-RECENT:]):
            if name not in self._repaired and name not in but:
                return name
        return None

    def failures(
        self,
        parent: str,
        *,
        island: int,
        most: int,
        before: int | None = None,
        but: str | None = None,
    ) -> tuple[Attempt, ...]:
        """Return the last failed attempts of an island at changing a program, oldest first.

        Args:
            parent: id of the program.
            island: whose attempts.
            most: how many.
            before: leave out those of this iteration and later ones.
            but: leave out the one of this id.
        """
        failed: list[Attempt] = []
        for entry in reversed(self._made.get((island, parent), ())):
            if len(failed) == most:
                break
            early = before is None or entry.iteration < before
            if early and entry.id in self._failed and entry.id != but:
                failed.append(self.attempt(entry.id))
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
                entry.parent,
                island=entry.island,
                most=failures,
                before=entry.iteration,
                but=entry.repairs,
            )
            turns.append(
                Turn(
                    candidate=self._candidates[entry.parent],  # it was chosen: it has a score
                    operator=entry.operator,
                    failures=attempts,
                    answer=entry.answer,
                    answer_ids=entry.answer_ids,
                    partner=None if entry.partner is None else self._candidates[entry.partner],
                    repairs=None if entry.repairs is None else self.attempt(entry.repairs),
                )
            )
            entry = self._entries[entry.parent]
        return tuple(reversed(turns))

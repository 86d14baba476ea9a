"""The programs that a run knows, and which new ones are worth an evaluation.

Covers: refusing children that do not parse, would fail on a name, change nothing or are known on
any island; the failed attempts at changing a program; a program's lineage. Does not cover who may
be a parent on which island: ``engine.search.island``.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from engine.core import Attempt, Candidate, Evaluation, Failure, Program, Refusal, Turn
from engine.search.roster import Place

REPAIR = "repair"
"""The operator that needs a failed attempt, whose parent its children have."""
FIRST_ITERATION = -1
"""Number under which the programs stand that a run begins with."""
RECENT = 16
"""Failed attempts of an island, the last ones, among which one to repair is looked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A program as it is admitted, and how it came to be.

    Attributes:
        id: the candidate's.
        program: the program.
        iteration: that generated it; `FIRST_ITERATION` for the initial program.
        index: which of the iteration's children it is.
        island: whose iteration it was.
        islands: for a program that the run begins with, the islands that begin with it; None for
            all of them.
        parent: id of the program that it was made from; None for the initial program.
        operator: name of the operator that asked for it; empty for the initial program.
        answer: the completion that it was read from; empty for the initial program, and if the
            completion was recorded with an earlier child.
        answer_ids: the completion's tokens, as sampled.
        partner: id of the program that the parent was to be combined with.
        repairs: id of the failed attempt that it was to correct.
    """

    id: str
    program: Program
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

    The answers depend on what was admitted and told, not on the order.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._attempts: defaultdict[tuple[int, str], list[Place]] = defaultdict(list)
        """By island and parent, of the attempts that failed, in their order."""
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
        self._keys.add(entry.program.key)
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
                program=self._entries[candidate_id].program.text,
                score=evaluation.score,
            )
        elif evaluation.failure is not Failure.SCREENED:
            self._failed[candidate_id] = evaluation
            entry = self._entries[candidate_id]
            if entry.parent is not None:
                bisect.insort(self._attempts[entry.island, entry.parent], entry.place)
                if entry.operator != REPAIR:
                    bisect.insort(self._broken[entry.island], entry.place)
        return True

    def entry(self, candidate_id: str) -> Entry:
        """Return an admitted program.

        Raises:
            KeyError: there is none of this id.
        """
        return self._entries[candidate_id]

    def refusal(self, program: Program | None, *, parent: str) -> Refusal | None:
        """Return why a child of the program ``parent`` would not be worth an evaluation, or None.

        Raises:
            KeyError: no program was admitted under this id.
        """
        if program is None:
            return Refusal.UNPARSED
        if program.key == self._entries[parent].program.key:
            return Refusal.UNCHANGED
        if program.key in self._keys:
            return Refusal.DUPLICATE
        if program.undefined:
            return Refusal.UNDEFINED
        return None

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
            program=self._entries[candidate_id].program.text,
            evaluation=self._failed[candidate_id],
        )

    def begin_repair(self, candidate_id: str) -> None:
        """Take in that a call is to correct a failed attempt: it is not offered again."""
        self._repaired.add(candidate_id)

    def broken(self, *, island: int, but: Collection[str] = ()) -> str | None:
        """Return the last failed attempt of an island that no call was to correct yet.

        An attempt that was itself made to correct another one is not offered, nor one that is older
        than the last `RECENT` attempts.

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
        places = self._attempts.get((island, parent), [])
        end = len(places) if before is None else bisect.bisect(places, (before,))
        names = (name for *_, name in reversed(places[:end]) if name != but)
        last = [self.attempt(name) for name in itertools.islice(names, most)]
        return tuple(reversed(last))

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

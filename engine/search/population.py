"""The programs that a run knows, and which new ones are worth an evaluation.

Covers: refusing children that do not parse, would fail on a name, change nothing or are known on
any island; the failed attempts at changing a program; a program's lineage. Does not cover who may
be a parent on which island: ``engine.search.island``.
"""

import bisect
import itertools
from collections import defaultdict
from collections.abc import Collection

from engine.core import (
    FIRST_ITERATION,
    Attempt,
    Call,
    Candidate,
    Cell,
    Child,
    Evaluation,
    Failure,
    Place,
    Program,
    Refusal,
    Turn,
)

REPAIR = "repair"
"""The operator that needs a failed attempt, whose parent its children have."""
RECENT = 16
"""Failed attempts of an island, the last ones, among which one to repair is looked for."""


class Population:
    """All programs admitted so far: the valid ones as candidates, those that failed as attempts.

    A program that a cheap stage screened out is neither: it ran, and was merely not among the best.

    The answers depend on what was admitted and told, not on the order.
    """

    def __init__(self) -> None:
        self._programs: dict[str, Program] = {}
        self._known: dict[str, str] = {}
        """By key, the id of the first program that has it."""
        self._expected: dict[str, str] = {}
        """By key, the id of the first program that has it and is not judged where it was made."""
        self._children: dict[str, Child] = {}
        self._calls: dict[int, Call] = {}
        self._candidates: dict[str, Candidate] = {}
        self._failed: dict[str, Evaluation] = {}
        self._told: set[str] = set()
        self._attempts: defaultdict[tuple[int, str], list[Place]] = defaultdict(list)
        """By island and parent, of the attempts that failed, in their order."""
        self._broken: defaultdict[int, list[Place]] = defaultdict(list)
        """By island, of the failed attempts that may be repaired once, in their order."""
        self._repaired: set[str] = set()

    def begin_with(
        self, name: str, program: Program, *, score: float | None, index: int, cell: Cell | None
    ) -> Candidate | None:
        """Take in a program that the run begins with; return it if it has a score.

        Args:
            name: its id.
            program: the program.
            score: None if its evaluation gave none.
            index: its place among those that the run begins with.
            cell: its own; None if it has none.
        """
        self._add(name, program)
        return self._scored(name, score, iteration=FIRST_ITERATION, index=index, cell=cell)

    def expect(self, name: str, program: Program) -> None:
        """Take in that a program was made elsewhere: a child that is the same takes its place."""
        self._expected.setdefault(program.key, name)

    def know(self, name: str, program: Program) -> None:
        """Take in that a program was judged elsewhere: a child that is the same is a duplicate."""
        self._expected.pop(program.key, None)
        self._known.setdefault(program.key, name)

    def known_as(self, program: Program) -> str | None:
        """Return the id of the first program that is the same; None if there is none.

        One that is expected comes behind all others.
        """
        return self._known.get(program.key, self._expected.get(program.key))

    def is_duplicate(self, program: Program) -> bool:
        """Whether one that is the same is known, and not merely expected."""
        return program.key in self._known

    def admit(self, child: Child, call: Call) -> bool:
        """Take in a child of ``call``, to be scored later; return whether its id is new.

        Admitting an id again changes nothing.
        """
        if child.id in self._programs:
            return False
        assert child.program is not None  # or it had been refused
        self._add(child.id, child.program)
        self._children[child.id] = child
        self._calls[call.iteration] = call
        return True

    def tell(
        self, name: str, evaluation: Evaluation, *, cell: Cell | None = None
    ) -> Candidate | None:
        """Take in the verdict on an admitted child, once; return it if it has a score."""
        child = self._children[name]
        self._told.add(name)
        if evaluation.score is None and evaluation.failure is not Failure.SCREENED:
            self._failed[name] = evaluation
            island = self._calls[child.iteration].island
            bisect.insort(self._attempts[island, child.parent], child.place)
            if child.operator != REPAIR:
                bisect.insort(self._broken[island], child.place)
        score, iteration, index = evaluation.score, child.iteration, child.index
        return self._scored(name, score, iteration=iteration, index=index, cell=cell)

    def awaited(self, name: str) -> Child | None:
        """Return a child that was admitted; None if its verdict was told.

        Raises:
            KeyError: none was admitted under this id.
        """
        if name not in self._children:
            raise KeyError(f"candidate {name} was never admitted")
        return None if name in self._told else self._children[name]

    def island_of(self, child: Child) -> int:
        """Return the island whose call made an admitted child."""
        return self._calls[child.iteration].island

    def parent_of(self, name: str) -> str:
        """Return the id of an admitted child's parent."""
        return self._children[name].parent

    def refusal(self, program: Program | None, *, parent: str) -> Refusal | None:
        """Return why a child of the program ``parent`` would not be worth an evaluation, or None.

        Raises:
            KeyError: no program was admitted under this id.
        """
        if program is None:
            return Refusal.UNPARSED
        if program.key == self._programs[parent].key:
            return Refusal.UNCHANGED
        if self.is_duplicate(program):
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
            program=self._programs[candidate_id].text,
            evaluation=self._failed[candidate_id],
        )

    def begin_repair(self, candidate_id: str) -> None:
        """Take in that a call is to correct a failed attempt: it is not offered again."""
        self._repaired.add(candidate_id)

    def broken(self, *, island: int, but: Collection[str | None] = ()) -> str | None:
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

    def lineage(
        self, candidate_id: str, *, failures: int, most: int | None = None
    ) -> tuple[Turn, ...]:
        """Return the steps that led to a candidate, from the first program on.

        Args:
            candidate_id: of the candidate, which the last step led to.
            failures: how many failed attempts each step showed, at most: the last ones before it.
            most: how many steps, the last ones; None for all.
        """
        turns = list[Turn]()
        while (child := self._children.get(candidate_id)) is not None and len(turns) != most:
            call = self._calls[child.iteration]
            attempts = self.failures(
                child.parent,
                island=call.island,
                most=failures,
                before=child.iteration,
                but=call.repairs,
            )
            turns.append(
                Turn(
                    candidate=self._candidates[child.parent],  # it was chosen: it has a score
                    operator=child.operator,
                    failures=attempts,
                    answer=child.completion,
                    answer_ids=child.completion_ids,
                    partner=None if call.partner is None else self._candidates[call.partner],
                    repairs=None if call.repairs is None else self.attempt(call.repairs),
                )
            )
            candidate_id = child.parent
        return tuple(reversed(turns))

    def _add(self, name: str, program: Program) -> None:
        self._programs[name] = program
        self._known.setdefault(program.key, name)

    def _scored(
        self, name: str, score: float | None, *, iteration: int, index: int, cell: Cell | None
    ) -> Candidate | None:
        if score is None:
            return None
        self._candidates[name] = Candidate(
            id=name,
            program=self._programs[name].text,
            score=score,
            iteration=iteration,
            index=index,
            cell=cell,
        )
        return self._candidates[name]

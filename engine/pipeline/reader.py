"""What a child is found to be: its program, and whether that is worth an evaluation.

Does not cover how programs are read from an answer (``engine.prompts``), which children they are
(``landing.py``), or what is known already (``engine.search``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.core import Parsed, Pending, Refusal
from engine.pipeline.flight import Flight
from engine.pipeline.landing import Landing
from engine.prompts import Tokenizer
from engine.search import Search
from engine.search.novelty import Novelty
from engine.store import Child


class Reader:
    """Reads children by what the search knows now."""

    def __init__(
        self,
        *,
        search: Search,
        tokenizer: Tokenizer,
        longest_parent: int,
        novelty: Novelty | None,
    ) -> None:
        """Join the parts.

        Args:
            search: knows which programs are not new.
            tokenizer: the model's.
            longest_parent: tokens of the longest program that every operator's prompt has room for.
            novelty: says which are near-copies; None for none.
        """
        self._search = search
        self._tokenizer = tokenizer
        self._longest_parent = longest_parent
        self._novelty = novelty

    def children(self, flight: Flight, landing: Landing) -> Iterator[Child]:
        """Yield the events that record the children that a completion makes.

        Each is to be recorded before the next one is asked for, which may be the same program.
        """
        for index in landing.children:
            program, refusal = self._read(flight, landing.child(index))
            yield flight.child(landing, index, program=program, refusal=refusal)

    def pending(self, flights: Iterable[Flight]) -> tuple[Pending, ...]:
        """Return the candidates that guesses will bring if they come true, by what is known now.

        In the order of the flights and of the children in them.
        """
        found = []
        for flight in flights:
            for landing in sorted(flight.held, key=lambda each: each.children):
                for index in landing.children:
                    program, refusal = self._read(flight, landing.child(index))
                    if program is not None and refusal is None:
                        found.append(Pending(id=flight.child_id(index), program=program))
        return tuple(found)

    def _read(self, flight: Flight, parsed: Parsed | None) -> tuple[str | None, Refusal | None]:
        if parsed is None:
            return None, Refusal.ABSENT
        parent, program = flight.proposal.parent, parsed.program
        refusal = self._search.refusal(program, parent=parent)
        if refusal is None and program is not None and self._is_long(program):
            refusal = Refusal.LONG
        if refusal is None and program is not None and self._is_near_copy(flight, program):
            refusal = Refusal.SIMILAR
        return program, refusal

    def _is_near_copy(self, flight: Flight, program: str) -> bool:
        if self._novelty is None:
            return False
        others = self._search.programs(flight.proposal.island)
        return self._novelty.near_copy(program, others) is not None

    def _is_long(self, program: str) -> bool:
        """Whether a prompt with this parent could outgrow the model's context."""
        return len(self._tokenizer.encode(program)) > self._longest_parent

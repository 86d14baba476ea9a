"""What a child is found to be: its program, and whether that is worth an evaluation.

Does not cover how a program is read from an answer (``engine.prompts``), or what is known already
(``engine.search``).
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.core import Generation, Pending, Refusal
from engine.embedding import KeptEmbeddings, NGramEmbedder
from engine.pipeline.flight import Flight
from engine.prompts import Tokenizer
from engine.search import Search
from engine.search.novelty import Novelty
from engine.store import Child

_EMBEDDINGS_KEPT = 1 << 14  # 4 KiB each


class Reader:
    """Reads children by what the search knows now."""

    def __init__(
        self,
        *,
        search: Search,
        tokenizer: Tokenizer,
        longest_parent: int,
        novelty: float | None,
    ) -> None:
        """Join the parts.

        Args:
            search: knows which programs are not new.
            tokenizer: the model's.
            longest_parent: tokens of the longest program that every operator's prompt has room for.
            novelty: the largest cosine with a program of the island that is let through; None for
                any.
        """
        self._search = search
        self._tokenizer = tokenizer
        self._longest_parent = longest_parent
        self._novelty: Novelty | None = None
        if novelty is not None:
            embedder = KeptEmbeddings(NGramEmbedder(), most=_EMBEDDINGS_KEPT)
            self._novelty = Novelty(embedder=embedder, threshold=novelty)

    def child(self, flight: Flight, generation: Generation) -> Child:
        """Return the event that records a child."""
        program, refusal = self._read(flight, generation)
        return flight.child(generation, program=program, refusal=refusal)

    def pending(self, flights: Iterable[Flight]) -> tuple[Pending, ...]:
        """Return the candidates that guesses will bring if they come true, by what is known now.

        In the order of the flights and of the children in them.
        """
        found = []
        for flight in flights:
            for generation in sorted(flight.held, key=lambda each: each.index):
                program, refusal = self._read(flight, generation)
                if program is not None and refusal is None:
                    found.append(Pending(id=flight.child_id(generation), program=program))
        return tuple(found)

    def _read(self, flight: Flight, generation: Generation) -> tuple[str | None, Refusal | None]:
        parent = flight.proposal.parent
        program = flight.operator.parse(parent=parent, prompt=flight.prompt, generation=generation)
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

"""Reading a child: which program it is, and whether that is worth an evaluation.

Does not cover how programs are read from an answer (``engine.prompts``), which children they are
(``request.py``), or what is known already (``engine.search``).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.core import GIVEN_UP, Parsed, Program, Refusal
from engine.pipeline.request import Request, Response
from engine.prompts import Tokenizer
from engine.search.novelty import Novelty
from engine.search.search import Search
from engine.store import Child
from engine.syntax.blocks import keeps_fixed


@dataclass(frozen=True, kw_only=True, slots=True)
class Reader:
    """Reads children by what the search knows now.

    Attributes:
        search: says which programs are known already.
        tokenizer: the model's.
        longest_parent: tokens of the longest program that every operator's prompt has room for; the
            prompt of a longer parent could outgrow the model's context.
        novelty: says which are near-copies; None for none.
    """

    search: Search
    tokenizer: Tokenizer
    longest_parent: int
    novelty: Novelty | None

    def children(self, request: Request, response: Response) -> Iterator[Child]:
        """Yield the events that record the children that a completion makes.

        Record each event before you take the next: if two children are the same program, the
        second one is refused as a copy of the first.
        """
        for index in response.children:
            program, refusal = self._read(request, response.child(index))
            if response.generation.finish_reason == GIVEN_UP:
                refusal = Refusal.FAILED
            yield request.child(response, index, program=program, refusal=refusal)

    def _read(
        self, request: Request, parsed: Parsed | None
    ) -> tuple[Program | None, Refusal | None]:
        if parsed is None:
            return None, Refusal.ABSENT
        program, proposal = parsed.program, request.proposal
        refusal = self.search.refusal(program, parent=proposal.parent.id)
        if refusal is None and program is not None:
            if not keeps_fixed(program.text, parent=proposal.parent.program):
                refusal = Refusal.OUTSIDE
            elif len(self.tokenizer.encode(program.text, plain=True)) > self.longest_parent:
                refusal = Refusal.LONG
            elif self._is_near_copy(program, island=proposal.island):
                refusal = Refusal.SIMILAR
        return program, refusal

    def _is_near_copy(self, program: Program, *, island: int) -> bool:
        if self.novelty is None:  # then nobody lists all programs of the island, for each child
            return False
        others = self.search.programs(island)
        return self.novelty.near_copy(program.text, others) is not None

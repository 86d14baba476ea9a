"""Reading a child: which program it is, and whether that is worth an evaluation.

Does not cover how programs are read from an answer (``engine.prompts``), which children they are
(``response.py``), or what is known already (``engine.search``).
"""

from collections.abc import Iterator

from engine.core import Parsed, Program, Refusal
from engine.pipeline.request import Request, Response
from engine.prompts import Tokenizer
from engine.search.novelty import Novelty
from engine.search.search import Search
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
            search: says which programs are known already.
            tokenizer: the model's.
            longest_parent: tokens of the longest program that every operator's prompt has room for.
            novelty: says which are near-copies; None for none.
        """
        self._search = search
        self._tokenizer = tokenizer
        self._longest_parent = longest_parent
        self._novelty = novelty

    def children(self, request: Request, response: Response) -> Iterator[Child]:
        """Yield the events that record the children that a completion makes.

        Record each event before you take the next: if two children are the same program, the
        second one is refused as a copy of the first.
        """
        for index in response.children:
            program, refusal = self._read(request, response.child(index))
            yield request.child(response, index, program=program, refusal=refusal)

    def _read(
        self, request: Request, parsed: Parsed | None
    ) -> tuple[Program | None, Refusal | None]:
        if parsed is None:
            return None, Refusal.ABSENT
        program = parsed.program
        refusal = self._search.refusal(program, parent=request.proposal.parent.id)
        if refusal is None and program is not None:
            if self._is_long(program.text):
                refusal = Refusal.LONG
            elif self._is_near_copy(request, program.text):
                refusal = Refusal.SIMILAR
        return program, refusal

    def _is_near_copy(self, request: Request, program: str) -> bool:
        if self._novelty is None:
            return False
        others = self._search.programs(request.proposal.island)
        return self._novelty.near_copy(program, others) is not None

    def _is_long(self, program: str) -> bool:
        """Whether a prompt with this parent could outgrow the model's context."""
        return len(self._tokenizer.encode(program)) > self._longest_parent

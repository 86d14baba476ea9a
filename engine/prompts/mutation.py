"""The operator ``mutation``: shows a program, and takes the answer for its child, as it is.

For ``engine.mutation.MutationModel``, which reads nothing but programs: no task, no scores and no
other programs are shown, whatever the layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from engine.core import Candidate, Generation, Parsed, Part, Prompt, Proposal, UserError
from engine.prompts.blocks import Blocks
from engine.prompts.operator import Operator, Parsing, Tokenizer
from engine.syntax import read


class Mutation(Operator):
    """Asks for a mutation of the parent; the answer comes in one piece."""

    def __init__(self, *, tokenizer: Tokenizer, max_tokens: int) -> None:
        """``max_tokens`` bounds the child."""
        self._blocks = Blocks(tokenizer)
        self._max_tokens = max_tokens
        self._room = tokenizer.max_model_len - max_tokens

    @property
    def longest_parent(self) -> int:
        """See `Operator.longest_parent`."""
        return self._room

    def compose(self, proposal: Proposal) -> Prompt:
        """Return the parent's program.

        Raises:
            UserError: it does not fit.
        """
        shows = (proposal.parent.id,)
        parent = self._blocks.make(Part.PARENT, proposal.parent.program, shows=shows)
        if len(parent.token_ids) > self._room:
            raise UserError(
                f"candidate {proposal.parent.id} has {len(parent.token_ids)} tokens, and the model "
                f"takes {self._room} beside its answer; raise model.max_model_len"
            )
        return Prompt(blocks=(parent,), stop=(), max_tokens=self._max_tokens)

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        """Return what takes the answer, if it is a whole program."""
        whole = generation.finish_reason == "stop"
        return partial(_answered, generation.text if whole else "\0")


def _answered(text: str) -> Sequence[Parsed]:
    return (Parsed(program=read(text)),)

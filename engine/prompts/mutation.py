"""The operator ``mutation``: shows a program, and takes the answer for its child, as it is.

For ``engine.mutation.MutationModel``, which reads nothing but programs: no task, no scores and no
other programs are shown, whatever the layout.
"""

from collections.abc import Sequence
from functools import partial

from engine.core import Candidate, Generation, Parsed, Part, Prompt, Proposal, UserError
from engine.prompts.operator import OPERATORS, Operator, Parsing
from engine.syntax import read


@OPERATORS.register("mutation")
class Mutation(Operator):
    """Asks for a mutation of the parent; the answer comes in one piece."""

    @property
    def longest_parent(self) -> int:
        """See `Operator.longest_parent`."""
        return self.tokenizer.max_model_len - self.max_tokens

    def compose(self, proposal: Proposal) -> Prompt:
        """Return the parent's program.

        Raises:
            UserError: it does not fit.
        """
        shows = (proposal.parent.id,)
        room = self.longest_parent
        parent = self.block(Part.PARENT, proposal.parent.program, shows=shows)
        if len(parent.token_ids) > room:
            raise UserError(
                f"candidate {proposal.parent.id} has {len(parent.token_ids)} tokens, and the model "
                f"takes {room} beside its answer; raise model.max_model_len"
            )
        return Prompt(blocks=(parent,), stop=(), max_tokens=self.max_tokens)

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        """Return what takes the answer, if it is a whole program."""
        whole = generation.finish_reason == "stop"
        return partial(_answered, generation.text if whole else "\0")


def _answered(text: str) -> Sequence[Parsed]:
    return (Parsed(program=read(text)),)

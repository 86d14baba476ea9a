"""The operator ``verbalized``: one answer holds several programs, each with a probability.

Verbalized Sampling (Zhang et al., 2025) as TurboEvolve has it (section 3.1 and appendix A): the
model is asked for K different programs in one answer, and to say how likely each of them is, which
shows more of what it might have written than K answers do. The answer is JSON, held to a schema by
vLLM's structured output. The first K programs are the children, in the order of the answer. Fewer
are accepted, down to a minimum (``engine.pipeline.request``). The probabilities are recorded and
used for nothing, as in TurboEvolve.

In a transcript its exchanges are not repeated: an answer with K programs is not what led to one of
them, so the conversation begins anew with the program.

Does not cover the form of an answer (``responses.py``).
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from engine.core import Block, Candidate, Generation, Parsed, Program, Prompt, Proposal
from engine.prompts.chat import ChatOperator, first_program
from engine.prompts.fence import fenced_blocks
from engine.prompts.operator import OPERATORS, Parsing
from engine.prompts.requests import failed
from engine.prompts.responses import responses, schema

_REQUEST = (
    "Write better versions of the current program that differ from each other, as if drawn at "
    "random from all the answers that you could give. Number of versions: {k}.\n"
    'Answer with one JSON object and nothing else. Its key "responses" holds a list with one '
    "object for each version:\n"
    '- "code": a string with the whole program, and no fence or explanation in it;\n'
    '- "probability": a number from 0.0 to 1.0, how likely you would have been to give this '
    "answer; those of all versions add up to 1."
)


@OPERATORS.register("verbalized")
class Verbalized(ChatOperator):
    """Asks for K whole programs in one answer.

    No answer is hopeless, because a sound program may follow a broken one. None is complete before
    the schema ends it.
    """

    def compose(self, proposal: Proposal) -> Prompt:
        """Return the prompt; see `ChatOperator.compose`."""
        prompt = super().compose(proposal)
        return replace(prompt, schema=schema(proposal.k), at_once=proposal.k)

    def answer_tokens(self, proposal: Proposal) -> int:
        """Return K times the tokens of one program, but no more than half of the context.

        A single program may have more than that half.
        """
        half = self._tokenizer.max_model_len // 2
        return max(self._max_tokens, min(proposal.k * self._max_tokens, half))

    def ask(self, proposal: Proposal) -> Sequence[Block]:
        """See `Writer.ask`."""
        request = _REQUEST.format(k=proposal.k)
        return self._asked([(request, ()), *failed(proposal.failures, parent=proposal.parent)])

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        """Return what reads the programs of the answer's first entries."""
        return partial(_listed, generation.text, prompt.at_once)


def _listed(answer: str, most: int) -> Sequence[Parsed]:
    return tuple(
        Parsed(program=_program(entry.code), probability=entry.probability)
        for entry in itertools.islice(responses(answer), most)
    )


def _program(code: str) -> Program | None:
    """Return the program in an entry's text, which may have a fence round it all the same."""
    code = code.replace("\r\n", "\n")
    texts = (code, *(block.text for block in fenced_blocks(code)))
    return first_program(text.strip() + "\n" for text in texts)

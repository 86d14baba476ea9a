"""The operator ``verbalized``: one answer holds several programs, each with a probability.

Verbalized Sampling (Zhang et al., 2025) as TurboEvolve has it (section 3.1 and appendix A): the
model is asked for K different programs in one answer, and to say how likely each of them is, which
shows more of what it might have written than K answers do. The answer is JSON, held to a schema by
vLLM's structured output. The first K programs are the children, in the order of the answer. Fewer
are accepted, down to a minimum (``engine.pipeline.request``). The probabilities are recorded and
used for nothing, as in TurboEvolve. They are asked to add up to 1, give or take `SLACK`; those of
an answer where they do not say nothing, and are recorded as none.

In a transcript its exchanges are not repeated: an answer with K programs is not what led to one of
them, so the conversation begins anew with the program.

The answer is an object with a list of entries; where it was cut off, those before the cut count:

    {"responses": [{"code": "...", "probability": 0.5}, ...]}
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from engine.core import Block, Candidate, Generation, Parsed, Program, Prompt, Proposal
from engine.prompts.answer import fenced_blocks, stripped
from engine.prompts.attempts import failed
from engine.prompts.chat import ChatOperator, advice, first_program, hinted
from engine.prompts.operator import OPERATORS, Parsing
from engine.syntax.blocks import merged

_DECODER = json.JSONDecoder()
SLACK = 1e-3 + 1e-9
"""By how much the probabilities of an answer may miss 1 (TurboEvolve, appendix A), and rounding."""
_OPENING = re.compile(r'\s*\{\s*"responses"\s*:\s*\[\s*')
_COMMA = re.compile(r"\s*,\s*")
_AFTER_ENTRY = re.compile(r"\s*[],]")
_REQUEST = (
    "Write better versions of the current program that differ from each other, as if drawn at "
    "random from all the answers that you could give. Number of versions: {k}.\n"
    "Each takes the inputs that the current program takes and returns outputs of the same form.\n"
    'Answer with one JSON object and nothing else. Its key "responses" holds a list with one '
    "object for each version:\n"
    '- "code": a string with {bare}, and no fence or explanation in it;\n'
    '- "probability": a number from 0.0 to 1.0, how likely you would have been to give this '
    "answer; those of all versions add up to 1."
)


@OPERATORS.register("verbalized")
class Verbalized(ChatOperator):
    """Asks for K whole programs in one answer.

    None is complete before the schema ends it.
    """

    def compose(self, proposal: Proposal) -> Prompt:
        """Return the prompt; see `ChatOperator.compose`."""
        prompt = super().compose(proposal)
        return replace(prompt, schema=schema(proposal.k), at_once=proposal.k)

    def answer_tokens(self, proposal: Proposal) -> int:
        """Return K times the tokens of one program, but no more than half of the context.

        A single program may have more than that half.
        """
        half = self.tokenizer.max_model_len // 2
        return max(self.max_tokens, min(proposal.k * self.max_tokens, half))

    def ask(self, proposal: Proposal) -> Sequence[Block]:
        """Return the request."""
        request = _REQUEST.format(k=proposal.k, bare=self.form.bare.removesuffix(","))
        attempts = failed(proposal.failures, parent=proposal.parent, form=self.form)
        return self._asked([*hinted(proposal.hint), *advice(proposal), (request, ()), *attempts])

    def parsing(self, *, parent: Candidate, prompt: Prompt, generation: Generation) -> Parsing:
        """Return what reads the programs of the answer's first entries."""
        return partial(_listed, generation.text, prompt.at_once, parent.program)


def _listed(answer: str, most: int, parent: str) -> Sequence[Parsed]:
    entries = list(responses(answer))
    known = [entry.probability for entry in entries if entry.probability is not None]
    add_up = len(known) == len(entries) and abs(math.fsum(known) - 1) <= SLACK
    return tuple(
        Parsed(
            program=_program(entry.code, parent),
            probability=entry.probability if add_up else None,
        )
        for entry in entries[:most]
    )


def _program(code: str, parent: str) -> Program | None:
    """Return the program in an entry's text, which may have a fence round it all the same."""
    code = code.replace("\r\n", "\n")
    texts = (code, *(block.text for block in fenced_blocks(code)))
    programs = (merged(parent, stripped(text)) for text in texts)
    return first_program(each for each in programs if each is not None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """One entry of an answer.

    Attributes:
        code: what stands for the program; empty for an entry that has no such text.
        probability: from 0 to 1; None for an entry that has no such number.
    """

    code: str
    probability: float | None


def schema(most: int) -> str:
    """Return the JSON schema of an answer with at most ``most`` entries, and at least one."""
    number = {"type": "number", "minimum": 0, "maximum": 1}
    entry = _object(code={"type": "string"}, probability=number)
    entries = {"type": "array", "items": entry, "minItems": 1, "maxItems": most}
    return json.dumps(_object(responses=entries))


def _object(**properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def responses(text: str) -> Iterator[Response]:
    """Yield the entries of an answer, in its order, up to where it ends or is not JSON.

    What is yielded of the start of an answer is the start of what is yielded of the whole.
    """
    before = _OPENING.match(text)
    while before is not None:
        try:
            entry, end = _DECODER.raw_decode(text, before.end())
        except (ValueError, RecursionError):
            return
        before = _COMMA.match(text, end)
        if not isinstance(entry, dict) and not _AFTER_ENTRY.match(text, end):
            return  # of a number this may be a part: 0 of 0E1
        yield _response(entry)


def _response(entry: object) -> Response:
    fields: dict[str, Any] = entry if isinstance(entry, dict) else {}
    code = fields.get("code")
    probability: Any = fields.get("probability")
    is_share = type(probability) in (int, float) and 0 <= probability <= 1
    return Response(
        code=code if isinstance(code, str) else "",
        probability=float(probability) if is_share else None,
    )

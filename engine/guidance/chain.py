"""One child's chain: better guidance where it is asked for, and then the program."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core import Event, Generation, Guidance, Miss, Prompt, Proposal
from engine.guidance.operator import GuidedOperator
from engine.guidance.text import rewritten
from engine.inference import Sampling
from engine.prompts.answer import spoken

_PROGRAM = 1  # number of the program's answer, behind that with the guidance


@dataclass(kw_only=True)
class GuidedChain:
    """What was asked and answered so far for one child.

    Attributes:
        child: its id.
        position: its place among the children of its request.
        operator: composes the prompts.
        proposal: of the call, with the guidance that it begins with.
        begun_with: the id of that.
        sampling: of the first answer; a second one has its temperature, and a seed that follows.
        prompt: that is to be answered now.
        writes: whether it asks for the program.
    """

    child: str
    position: int
    operator: GuidedOperator
    proposal: Proposal
    begun_with: str | None
    sampling: Sampling
    prompt: Prompt
    writes: bool
    _events: list[Guidance] = field(default_factory=list)

    def sampled(self) -> Sampling:
        """Return how the answer to the prompt is sampled."""
        seed = self.sampling.seed
        if self.writes and self._events:
            seed = int(np.random.SeedSequence([seed, _PROGRAM]).generate_state(1)[0])
        return dataclasses.replace(
            self.sampling, seed=seed, stop=self.prompt.stop, max_tokens=self.prompt.max_tokens
        )

    def take(self, generation: Generation, *, missed: Mapping[Miss, int]) -> Prompt | None:
        """Take in the answer that rewrites the guidance; return what asks for the program.

        With the old guidance where the answer is of no use, as the source has it; None where the
        answer was ended.
        """
        old, operator = self.proposal.guidance, self.operator
        is_ended = generation.finish_reason == "abort"
        answer = "" if is_ended else spoken(generation.text, asked=self.prompt.ending)
        new = rewritten(old, answer, size=operator.size, most=operator.settings.tokens)
        self._events.append(self._event(generation, text=new, missed=missed))
        if is_ended:
            return None
        proposal = dataclasses.replace(self.proposal, guidance=old if new is None else new)
        self.prompt, self.writes = operator.compose(proposal), True
        return self.prompt

    def events(self) -> Sequence[Event]:
        """Return what records the answer that rewrites the guidance, if there is one."""
        return tuple(self._events)

    def _event(
        self, generation: Generation, *, text: str | None, missed: Mapping[Miss, int]
    ) -> Guidance:
        return Guidance(
            child=self.child,
            of=self.begun_with,
            text=text,
            answer=generation.text,
            answer_ids=generation.token_ids,
            finish_reason=generation.finish_reason,
            prompt_tokens=generation.prompt_tokens,
            cached_prompt_tokens=generation.cached_prompt_tokens,
            llm_seconds=generation.llm_seconds,
            missed=missed,
            temperature=self.sampling.temperature,
        )

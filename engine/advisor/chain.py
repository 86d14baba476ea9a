"""One child's chain: three ideas, their novelty, a selection, and the program.

A chain is at one prompt at a time. `Chain.take` reads an answer of the advisor's and returns the
next prompt; where an answer is of no use, the chain ends without a program. As long as the
repository is empty there is nothing to compare with: all ideas are new, and nobody is asked.

Does not cover sending prompts (``requests.py``).
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from engine.advisor.answers import (
    Draft,
    Judgement,
    Selection,
    read_ideas,
    read_novelty,
    read_selection,
)
from engine.advisor.endpoint import Reply
from engine.advisor.operator import AdvisedOperator, Situation
from engine.core import (
    Advice,
    Consultation,
    Event,
    Generation,
    Idea,
    Miss,
    Novelty,
    Prompt,
    Question,
)
from engine.inference import Sampling
from engine.pipeline.chained import not_decoded
from engine.settings import Implementer

_WRITING = len(Question)  # number of the implementer's answer, behind those of the questions


@dataclass(kw_only=True)
class Chain:
    """What was asked and answered so far for one child.

    Attributes:
        child: its id.
        position: its place among the children of its request.
        operator: composes the prompts.
        situation: from which the call's chains begin.
        sampling: of the first answer; the others have its temperature, and seeds that follow.
        prompt: that is to be answered now.
        question: that the prompt asks; None while the program is written.
        learns: whether what the answers were sampled from is kept.
    """

    child: str
    position: int
    operator: AdvisedOperator
    situation: Situation
    sampling: Sampling
    prompt: Prompt
    learns: bool
    implementer: Implementer
    question: Question | None = Question.IDEAS
    _drafts: tuple[Draft, ...] = ()
    _judgements: tuple[Judgement, ...] = ()
    _selection: Selection | None = None
    _unread: Question | None = None
    _outage: str | None = None
    _reply: Reply | None = None
    _consultations: list[Consultation] = field(default_factory=list)

    @property
    def writes(self) -> bool:
        """Whether the prompt asks for the program."""
        return self.question is None

    def sampled(self) -> Sampling:
        """Return how the answer to the prompt is sampled."""
        number = _WRITING if self.question is None else [*Question].index(self.question)
        seed = self.sampling.seed
        if number:
            seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        return dataclasses.replace(
            self.sampling,
            seed=seed,
            stop=self.prompt.stop,
            max_tokens=self.prompt.max_tokens,
            banned=self.prompt.banned,
            grammar=self.prompt.grammar,
            schema=self.prompt.schema,
        )

    def take(self, generation: Generation, *, missed: Mapping[Miss, int]) -> Prompt | None:
        """Take in the answer to the advisor's question; return the next prompt.

        None where the answer was ended, or is of no use, for instance because it was cut off.
        """
        assert self.question is not None  # the program is not the advisor's
        self._consultations.append(self._consultation(generation, missed))
        if generation.finish_reason == "abort":
            return None
        asked, prompt = self.question, self._read(generation.text)
        if prompt is None:
            self._unread = asked
        else:
            self.prompt = prompt
        return prompt

    def replied(self, reply: Reply | str) -> Generation:
        """Take in what an endpoint answered, or why it did not; return it as a completion.

        Its tokens are the service's own, so the completion has none.
        """
        if isinstance(reply, str):
            self._outage, text, reason = reply, "", "abort"
        else:
            self._reply, text, reason = reply, reply.text, reply.finish_reason
        return not_decoded(self, text, finish_reason=reason)

    def events(self) -> tuple[Event, ...]:
        """Return the events that record the ideas and the advice."""
        return (*self.ideas(), self.advice())

    def ideas(self) -> tuple[Idea, ...]:
        """Return the events that record the ideas; none before all of them are judged."""
        return tuple(
            Idea(
                child=self.child,
                number=number,
                hypothesis=draft.hypothesis,
                reasoning=draft.reasoning,
                novelty=each.novelty,
                of=None if each.number is None else self._known(each.number),
            )
            for number, (draft, each) in enumerate(
                zip(self._drafts, self._judgements, strict=False), start=1
            )
        )

    def advice(self) -> Advice:
        """Return the event that records what was asked and answered."""
        chosen, reply = self._selection, self._reply
        return Advice(
            child=self.child,
            idea=None if chosen is None else self._known(chosen.number),
            experiment="" if chosen is None else chosen.experiment,
            consultations=tuple(self._consultations),
            unread=self._unread,
            implementer=self.implementer,
            outage=self._outage,
            endpoint_prompt_tokens=0 if reply is None else reply.prompt_tokens,
            endpoint_tokens=0 if reply is None else reply.tokens,
            endpoint_seconds=0.0 if reply is None else reply.seconds,
        )

    def _read(self, text: str) -> Prompt | None:
        known = len(self.situation.known)
        if self.question is Question.IDEAS:
            self._drafts = read_ideas(text) or ()
            if not self._drafts:
                return None
            if known:
                self.question = Question.NOVELTY
                return self.operator.novelty(self.situation, self._drafts)
            self._judgements = tuple(Judgement(novelty=Novelty.NEW) for _ in self._drafts)
            return self._to_select()
        if self.question is Question.NOVELTY:
            self._judgements = read_novelty(text, known=known) or ()
            return self._to_select() if self._judgements else None
        numbers = self.operator.selectable(self.situation, self._judgements)
        self._selection = read_selection(text, numbers=numbers)
        return None if self._selection is None else self._to_write(self._selection)

    def _to_select(self) -> Prompt:
        self.question = Question.SELECTION
        return self.operator.selection(self.situation, self._drafts, self._judgements)

    def _to_write(self, selection: Selection) -> Prompt:
        self.question = None
        known, place = self.situation.known, selection.number - len(self.situation.known)
        idea = self._drafts[place - 1] if place > 0 else known[selection.number - 1].idea
        return self.operator.implementation(
            self.situation,
            hypothesis=idea.hypothesis,
            reasoning=idea.reasoning,
            selection=selection,
        )

    def _known(self, number: int) -> str:
        """Return the id of the idea with this number in the prompts."""
        known = self.situation.known
        place = number - len(known)
        return known[number - 1].idea.id if place <= 0 else f"{self.child}.{place}"

    def _consultation(self, generation: Generation, missed: Mapping[Miss, int]) -> Consultation:
        assert self.question is not None
        ids, shared = self.prompt.token_ids, self.situation.shared
        return Consultation(
            question=self.question,
            answer=generation.text,
            answer_ids=generation.token_ids,
            finish_reason=generation.finish_reason,
            logprobs=generation.logprobs,
            prompt_tokens=generation.prompt_tokens,
            cached_prompt_tokens=generation.cached_prompt_tokens,
            llm_seconds=generation.llm_seconds,
            missed=missed,
            temperature=self.sampling.temperature,
            shared=shared,
            own_ids=ids[shared:] if self.learns else (),
            grammar=self.prompt.grammar if self.learns else None,
        )

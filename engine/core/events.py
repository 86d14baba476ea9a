"""What a run writes down: twelve kinds of events, each with a subject that it has once.

Of a call and its children they hold what TurboEvolve logs (section 6, "Logging and definitions"):
island, iteration, parent and programs shown, K, and for each child its rank, what became of it, its
score and its cell. The improvement is the score's difference from the parent's.

Does not cover how they are kept (``engine.store``), or what follows from them: `RunHistory` there,
and `engine.pipeline.RunState`.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from engine.core.program import Evaluation, Place, Program


class Miss(enum.StrEnum):
    """Why a prompt token had to be computed; see ``engine.inference.misses``."""

    COLD = "cold"  # no earlier call of this session held the task
    NEW = "new"  # text that no earlier call of this session held
    MOVED = "moved"  # an earlier call held the text, behind another start
    COMPACTION = "compaction"  # the same, because the history was compacted
    EVICTED = "evicted"  # an earlier call held it behind the same start
    CONCURRENT = "concurrent"  # the same, and that call was still under way
    ADAPTER = "adapter"  # an earlier call held it there, under another version of the adapter
    ALIGNMENT = "alignment"  # the end of the prompt, which fills no block of the cache


class Refusal(enum.StrEnum):
    """Why a child is not evaluated."""

    UNPARSED = "unparsed"  # no program could be read from the completion
    ABSENT = "absent"  # the completion held fewer programs than it was asked for
    OUTSIDE = "outside"  # it changes what lies outside the evolve blocks
    UNDEFINED = "undefined"  # it would read a name that nothing defines
    UNCHANGED = "unchanged"  # the same program as its parent, by normalised AST
    DUPLICATE = "duplicate"  # the same program as an earlier child, by normalised AST
    SIMILAR = "similar"  # nearly the same as one of its island's programs, by embedding
    LONG = "long"  # too long to be shown to the model as a parent
    BUDGET = "budget"  # the run's budget was reached first


class _Event:
    """What all events share. An event's kind and subject together are unique in a log.

    Attributes:
        KIND: its kind.
        NAMED_BY: the fields that make up its subject.
    """

    __slots__ = ()
    KIND: ClassVar[str]
    NAMED_BY: ClassVar[tuple[str, ...]]

    @property
    def subject(self) -> str:
        """What tells it from the others of its kind."""
        return ".".join(str(getattr(self, name)) for name in self.NAMED_BY)


@dataclass(frozen=True, kw_only=True, slots=True)
class Session(_Event):
    """A process began to work on the run. Subject: its number, from 0.

    Attributes:
        number: sessions before this one.
        engine: version of the engine.
        fingerprint: the problem's, at the first session's start.
    """

    KIND = "session"
    NAMED_BY = ("number",)
    number: int
    engine: str
    fingerprint: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SampledFrom:
    """What a call's children were sampled from, so that their probabilities can be computed again.

    Attributes:
        prompt_ids: the prompt's tokens. Encoding its text again may give others, because its blocks
            were encoded one by one.
        banned: tokens that no child may hold.
        grammar: EBNF that every child follows; None for none.
        schema: JSON schema that every child follows; None for none.
    """

    prompt_ids: tuple[int, ...]
    banned: tuple[int, ...] = ()
    grammar: str | None = None
    schema: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Call(_Event):
    """A prompt is about to be sent, or was sent on a guess that came true. Subject: the iteration.

    Attributes:
        island: for which it is.
        parent: id of the program to change.
        rule: by which the parent was chosen: one of the parent policy's ways, or the policy's name
            if it has a single way. It is ``repair`` where the parent is that of a failed attempt
            which the call is to correct.
        shown: ids of the programs that the prompt shows besides the parent, in the order in which
            they are first shown: candidates, pending ones, failed attempts.
        known: how many events the log held when the prompt was composed. A search that was told
            these events, and that the candidates ``ahead`` are pending, composes it again.
        ahead: ids of candidates that the prompt shows though they were not recorded then: children
            of a guess that has come true since.
        guessed: whether it was begun before the verdicts that its parent depends on.
        partner: of a crossover: id of the program that the parent is combined with.
        repairs: of a repair: id of the failed attempt at changing the parent.
        adapter: version of the adapter that the children are sampled from; 0 for the model itself.
        guidance: id of the guidance that its children begin with: of the child before which it was
            written. None for the initial one, and in a run without guidance.
        sampled_from: what a trainer needs besides; None where nothing learns.
    """

    KIND = "call"
    NAMED_BY = ("iteration",)
    iteration: int
    island: int
    parent: str
    rule: str
    shown: tuple[str, ...] = ()
    operator: str
    k: int
    known: int
    ahead: tuple[str, ...] = ()
    guessed: bool = False
    prompt: str
    prompt_tokens: int
    temperatures: tuple[float, ...]
    seeds: tuple[int, ...]
    partner: str | None = None
    repairs: str | None = None
    adapter: int = 0
    guidance: str | None = None
    sampled_from: SampledFrom | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Child(_Event):
    """A child was generated. Subject: its id, ``iteration.index``.

    Attributes:
        completion: the model's answer. One that lists several programs is recorded, with its tokens
            and seconds, with the first child that it makes; it is empty for the others.
        completion_ids: the answer's tokens, as they were sampled.
        program: the program that the completion holds; None if it holds none.
        refusal: why it is not evaluated; None for a candidate, whose verdict follows.
        missed: how many tokens of its prompt were computed, by reason.
        rank: its place in an answer that lists several programs, from 0; None for a child with an
            answer of its own, and for an absent one.
        probability: that the model gave for it; None if it gave none.
        logprobs: of each token of the answer; see `Generation`.
    """

    KIND = "child"
    NAMED_BY = ("id",)
    id: str
    iteration: int
    index: int
    parent: str
    operator: str
    completion: str
    completion_ids: tuple[int, ...]
    finish_reason: str
    program: Program | None
    refusal: Refusal | None
    prompt_tokens: int
    cached_prompt_tokens: int
    llm_seconds: float
    missed: Mapping[Miss, int] = field(default_factory=dict)
    rank: int | None = None
    probability: float | None = None
    logprobs: tuple[float, ...] = ()

    @property
    def place(self) -> Place:
        """Where it stands among the others."""
        return self.iteration, self.index, self.id

    @property
    def generated_tokens(self) -> int:
        """Tokens sampled."""
        return len(self.completion_ids)


@dataclass(frozen=True, kw_only=True, slots=True)
class Seed(_Event):
    """The run begins with this program of a pool too; its verdict follows. Subject: its id.

    Attributes:
        number: its place in the pool, from 0.
        source: where it was read: ``FOLDER/FILE`` or ``RUN/CANDIDATE``.
        islands: numbers of the islands that begin with it, if it has a score.
    """

    KIND = "seed"
    NAMED_BY = ("candidate",)
    number: int
    source: str
    program: str
    islands: tuple[int, ...]

    @property
    def candidate(self) -> str:
        """Its id as a candidate."""
        return f"pool.{self.number}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict(_Event):
    """A candidate was evaluated. Subject: its id.

    Attributes:
        evaluation: what the evaluation found.
        program: source text, for the initial program, which no child event holds; else None.
        cell: the program's cell in the islands' archives: a bin for each feature. None for a
            program without a cell, and in a run without archives.
    """

    KIND = "verdict"
    NAMED_BY = ("candidate",)
    candidate: str
    evaluation: Evaluation
    program: str | None = None
    cell: tuple[int, ...] | None = None

    @property
    def score(self) -> float | None:
        """The evaluation's score; None if it gave none."""
        return self.evaluation.score


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenUp(_Event):
    """A call that was begun on a guess was given up. Subject: ``iteration.attempt``.

    Attributes:
        iteration: that it was begun for; in the same session, the call that was made instead has
            the same number.
        attempt: how many guesses for this iteration were given up before, in all sessions.
        island: for which it was.
        parent: the parent that was guessed.
        generated_tokens: of its children, all for nothing.
        prompt_tokens: of its children.
        cached_prompt_tokens: those of them whose KV was in the prefix cache.
        llm_seconds: seconds of the engine that its children took.
    """

    KIND = "given_up"
    NAMED_BY = ("iteration", "attempt")
    iteration: int
    attempt: int
    island: int
    parent: str
    generated_tokens: int
    prompt_tokens: int
    cached_prompt_tokens: int
    llm_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SwitchedOff(_Event):
    """A cheap stage ranks too badly to go on screening. As an event, its subject is its name.

    Attributes:
        stage: its name.
        iteration: the first one whose candidates skip it.
        correlation: its rank correlation with the full score, as estimated.
        error: two standard errors of the estimate, upwards.
        pairs: fully evaluated candidates that the estimate rests on.
    """

    KIND = "switched_off"
    NAMED_BY = ("stage",)
    stage: str
    iteration: int
    correlation: float
    error: float
    pairs: int


class Novelty(enum.StrEnum):
    """What the advisor finds of an idea, beside those of the repository."""

    NEW = "new"
    REFINES = "refines"  # it takes an idea further, or corrects it
    REPEATS = "repeats"  # the repository has it already, which it is not added to again


@dataclass(frozen=True, kw_only=True, slots=True)
class Idea(_Event):
    """The advisor had an idea. Subject: its id, the child's with the idea's number behind it.

    Attributes:
        child: id of the child before which it was had.
        number: its place among the ideas of that child, from 1.
        hypothesis: what would make programs better.
        reasoning: why.
        novelty: by the advisor's own judgement.
        of: id of the idea that it refines or repeats; None for a new one.
    """

    KIND = "idea"
    NAMED_BY = ("child", "number")
    child: str
    number: int
    hypothesis: str
    reasoning: str
    novelty: Novelty
    of: str | None = None

    @property
    def id(self) -> str:
        """Its id."""
        return self.subject


class Question(enum.StrEnum):
    """What the advisor is asked for before a program is written, in this order."""

    IDEAS = "ideas"
    NOVELTY = "novelty"  # left out as long as the repository is empty
    SELECTION = "selection"


@dataclass(frozen=True, kw_only=True, slots=True)
class Consultation:
    """One answer of the advisor, and what it was sampled from.

    Attributes:
        question: what it was asked.
        answer: its text.
        answer_ids: its tokens, as they were sampled.
        finish_reason: see `engine.core.Generation`, as for the next four.
        logprobs: of each token of the answer.
        prompt_tokens: of its prompt.
        cached_prompt_tokens: those of them whose KV was in the prefix cache.
        llm_seconds: of the engine.
        missed: how many tokens of its prompt were computed, by reason.
        temperature: that it was sampled at.
        shared: how many tokens its prompt has in common with the call's, from the start.
        own_ids: the tokens behind those; empty where nothing learns.
        grammar: EBNF that it follows; None where nothing learns.
    """

    question: Question
    answer: str
    answer_ids: tuple[int, ...]
    finish_reason: str
    logprobs: tuple[float, ...] = ()
    prompt_tokens: int
    cached_prompt_tokens: int
    llm_seconds: float
    missed: Mapping[Miss, int] = field(default_factory=dict)
    temperature: float
    shared: int
    own_ids: tuple[int, ...] = ()
    grammar: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice(_Event):
    """The advisor was asked before a child was written; the child follows. Subject: the child.

    Attributes:
        child: its id.
        idea: id of the idea that the child tests; None where the advisor came to none.
        experiment: what was to be tried.
        consultations: the advisor's answers, in their order.
        unread: the question whose answer was of no use, so that nothing was written; None also
            where the chain was ended because the budget was spent.
        implementer: ``model`` or ``endpoint``.
        outage: why the endpoint gave no answer; None if it did, or was not asked.
        endpoint_prompt_tokens: as the endpoint counted them; 0 if it did not say.
        endpoint_tokens: that it generated, likewise.
        endpoint_seconds: until its answer was there.
    """

    KIND = "advice"
    NAMED_BY = ("child",)
    child: str
    idea: str | None
    experiment: str
    consultations: tuple[Consultation, ...]
    unread: Question | None = None
    implementer: str = "model"
    outage: str | None = None
    endpoint_prompt_tokens: int = 0
    endpoint_tokens: int = 0
    endpoint_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Guidance(_Event):
    """The model was asked to rewrite the guidance before a child; the child follows.

    Subject: the child.

    Attributes:
        child: its id, and that of the new guidance.
        of: id of the guidance that was to be rewritten; None for the initial one.
        text: the new guidance, with which the child was written; None where the answer was of no
            use, so that the child was written with the old one.
        answer: the model's.
        answer_ids: its tokens, as they were sampled.
        finish_reason: see `engine.core.Generation`, as for the next three.
        prompt_tokens: of its prompt.
        cached_prompt_tokens: those of them whose KV was in the prefix cache.
        llm_seconds: of the engine.
        missed: how many tokens of its prompt were computed, by reason.
        temperature: that it was sampled at.
    """

    KIND = "guidance"
    NAMED_BY = ("child",)
    child: str
    of: str | None
    text: str | None
    answer: str
    answer_ids: tuple[int, ...]
    finish_reason: str
    prompt_tokens: int
    cached_prompt_tokens: int
    llm_seconds: float
    missed: Mapping[Miss, int] = field(default_factory=dict)
    temperature: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Update(_Event):
    """A step of training is over, and its adapter is on disk. Subject: its number.

    A figure that is not finite, which a step that was rolled back may have, is recorded as 0.

    Attributes:
        number: steps before this one, plus 1.
        version: of the adapter that calls begin with from now on: the step's number, or that of an
            earlier one if the step was skipped or rolled back.
        groups: iterations of the calls that it learned from.
        stale: how many groups were left out before it because they lagged too far behind.
        progress: share of the budget that was spent when it began, from 0 to 1.
        skipped: why nothing was learned; None for a step that learned.
        rolled_back: why the adapter is an earlier one; None for a step that stands.
        reward: mean over the children.
        spread: mean over the groups of the standard deviation of the advantages.
        entropy: mean over the tokens of the entropy, in nats, of what they were drawn from.
        gradient_norm: before it was clipped.
        clip_share: share of the tokens whose ratio was clipped.
        lag: mean over the groups of how often the version changed since they were sampled.
        kl: mean over the tokens of the divergence from the model itself, in nats.
        mismatch: mean over the tokens of the absolute difference between the log-probabilities that
            the sampler and the trainer compute, in nats.
        unique: share of the children that are valid and unlike their siblings and all before.
        common: share that the most frequent answer has among the children.
        tokens: that were learned from, without those that a grammar left no choice for.
        seconds: that the step took.
        swap_ms: that the model took to load the adapter, in milliseconds.
    """

    KIND = "update"
    NAMED_BY = ("number",)
    number: int
    version: int
    groups: tuple[int, ...]
    stale: int
    progress: float
    skipped: str | None = None
    rolled_back: str | None = None
    reward: float
    spread: float = 0.0
    entropy: float = 0.0
    gradient_norm: float = 0.0
    clip_share: float = 0.0
    lag: float = 0.0
    kl: float = 0.0
    mismatch: float = 0.0
    unique: float = 0.0
    common: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    swap_ms: float = 0.0

    @property
    def stands(self) -> bool:
        """Whether the step brought a new adapter."""
        return self.skipped is None and self.rolled_back is None


@dataclass(frozen=True, kw_only=True, slots=True)
class Hint(_Event):
    """Somebody who watches the run left a hint; prompts that are composed later show it.

    Subject: its number.

    Attributes:
        number: hints before this one.
        text: in place of the last hint's; empty to show none.
    """

    KIND = "hint"
    NAMED_BY = ("number",)
    number: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Fill(_Event):
    """A program was made without the model, for an evaluator that had nothing to do; its verdict
    follows. Subject: its number.

    Attributes:
        number: fills before this one.
        maker: what made it: see ``engine.fill``.
        parent: id of the program that it is a variant of.
        island: that it joins if it is better than its parent.
        sample: which of the maker's questions about the parent it is, from 0.
        program: the program.
        joins: whether it may be a parent where it is better than its own.
    """

    KIND = "fill"
    NAMED_BY = ("number",)
    number: int
    maker: str
    parent: str
    island: int
    sample: int
    program: Program
    joins: bool

    @property
    def id(self) -> str:
        """Under which its verdict stands, and under which it is a candidate."""
        return f"f{self.number}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tactics(_Event):
    """The model said what to try; calls that are composed later show it, an idea each.

    Subject: its number.

    Attributes:
        number: those before this one.
        ideas: that its answer holds; may be none.
        answer: as the model gave it.
        prompt_tokens: of the question.
        cached_prompt_tokens: those of them that the prefix cache served.
        generated_tokens: of the answer.
        llm_seconds: of the engine.
    """

    KIND = "tactics"
    NAMED_BY = ("number",)
    number: int
    ideas: tuple[str, ...]
    answer: str
    prompt_tokens: int
    cached_prompt_tokens: int
    generated_tokens: int
    llm_seconds: float


Event = (
    Session
    | Seed
    | Call
    | Idea
    | Advice
    | Guidance
    | Child
    | Verdict
    | SwitchedOff
    | GivenUp
    | Update
    | Hint
    | Fill
    | Tactics
)

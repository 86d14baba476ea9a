"""The values that travel between the parts of the engine.

Covers: what a problem is, and the small frozen records that each step of the loop hands to the
next one (ask, compose, generate, parse, evaluate, tell). Nothing here decides, reads a file or
imports another part of the engine, so every part may import this module.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
Outputs = Mapping[str, Array]
"""The arrays that a program returned for one case, by name, as its contract declares them."""

Score = Callable[[Sequence[Outputs]], Mapping[str, float]]
"""Trusted scoring: the outputs of all cases, in order, to metrics, ``score`` among them.

Raises `Rejected` for outputs that are well formed but not allowed."""

INITIAL = "initial"
"""Id of the candidate that every run starts from: the problem's initial program."""

SECONDS = "seconds"
"""Entry that isolated cases' outputs have besides the declared ones: the wall seconds, a 0-d
array, that the sandbox measured for the case's process, from its first line to its last result."""


class UserError(Exception):
    """Input that the user has to mend: one line that says what, where and what to do.

    The commands print it to standard error and exit with code 2.
    """


class Direction(enum.StrEnum):
    """Whether a larger or a smaller score is the better one."""

    MAXIMISE = "maximise"
    MINIMISE = "minimise"

    def better(self, score: float, than: float) -> bool:
        """Return whether ``score`` is strictly better than ``than``."""
        return score > than if self is Direction.MAXIMISE else score < than


@dataclass(frozen=True, kw_only=True, slots=True)
class ArraySpec:
    """What one returned array has to look like; anything else fails the candidate.

    Attributes:
        shape: the length of each dimension, exact or a range of allowed ones; ``()`` for a number.
        dtype: a NumPy dtype name that the value must convert to without losing information.
        finite: whether NaN and infinities are refused.
    """

    shape: tuple[int | range, ...]
    dtype: str = "float64"
    finite: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One call of a program's entry point: ``entry_point(*args, **kwargs)``.

    Attributes:
        name: names the case in messages, such as ``signal 3``.
        args: positional arguments, arrays or plain numbers.
        kwargs: keyword arguments, arrays or plain numbers.
        outputs: the arrays that have to come back. A program returns either a mapping with at
            least these names, or a tuple with exactly these values in this order (a single
            declared output may be returned bare).
    """

    name: str
    args: tuple[Array | float | int, ...]
    kwargs: Mapping[str, Array | float | int] = field(default_factory=dict)
    outputs: Mapping[str, ArraySpec]


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What one evaluation of one candidate may use: wall seconds and bytes of memory."""

    seconds: float
    memory_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownScore:
    """A published score of the problem, and where it was published.

    Attributes:
        score: as published.
        source: who published it, and what to know of it.
        comparable: whether it was measured as this problem measures: the same data, the same
            quantity, no looser tolerance.
    """

    score: float
    source: str
    comparable: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Feature:
    """A dimension in which programs differ, cut into bins of equal width; see ``search.features``.

    Attributes:
        name: one of ``engine.search.features.MEASURES``, or of a metric of the problem.
        low: where the first bin begins; smaller values count as in it.
        high: where the last bin ends; larger values count as in it.
        bins: how many, 1 or more.

    Raises:
        ValueError: the range is empty or not finite, or there is no bin.
    """

    name: str
    low: float
    high: float
    bins: int

    def __post_init__(self) -> None:
        if not 0 < self.high - self.low < math.inf:
            raise ValueError(
                f"feature {self.name!r} ranges from {self.low} to {self.high}; the first must be "
                "the smaller, and their distance finite"
            )
        if self.bins < 1:
            raise ValueError(f"feature {self.name!r} has {self.bins} bins; it needs 1 or more")

    def bin(self, value: float) -> int:
        """Return the number of the bin that holds a value, from 0.

        A bin holds its lower bound and not its upper one, but for the last one.

        Raises:
            ValueError: the value is not a number.
        """
        if math.isnan(value):
            raise ValueError(f"feature {self.name!r} is not a number")
        value = min(max(value, self.low), self.high)
        share = (value - self.low) / (self.high - self.low)
        return min(int(share * self.bins), self.bins - 1)


class Rejected(Exception):
    """Raised by a problem's ``score`` for outputs that are well formed but not allowed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A way to score a program: the problem's own, or a cheaper one that stands in front of it.

    Attributes:
        name: names the stage in metrics and messages.
        cases: the calls that make up one evaluation, in order.
        score: what their outputs are worth; in all stages of a problem, better means the same.
    """

    name: str
    cases: tuple[Case, ...]
    score: Score


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """A problem as its folder declares it; see ``engine/problem.py`` for the folder's layout.

    Attributes:
        name: the folder's name.
        folder: where it was loaded from.
        direction: whether the score is maximised or minimised.
        statement: the task in words, for the model.
        initial_program: source text of the first candidate.
        entry_point: the function that every candidate has to define.
        stages: cheap ones first; the last one is the full evaluation, whose ``score`` the search
            optimises.
        isolate_cases: run each case in a process of its own, so that nothing a program saw in
            one case is there in the next.
        limits: time and memory for one stage of one evaluation.
        modules: what the sandbox imports once, before candidates run, besides its usual ones.
        known_scores: published scores, for reports.
        features: the dimensions of its archive; none for a problem that names none.
        fingerprint: SHA-256 over the folder's files, its data and the kernels; runs with equal
            ones were scored alike.
    """

    name: str
    folder: Path
    direction: Direction
    statement: str
    initial_program: str
    entry_point: str
    stages: tuple[Stage, ...]
    isolate_cases: bool
    limits: Limits
    modules: tuple[str, ...]
    known_scores: tuple[KnownScore, ...]
    fingerprint: str
    features: tuple[Feature, ...] = ()

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases of the full evaluation."""
        return self.stages[-1].cases

    @property
    def score(self) -> Score:
        """The scoring of the full evaluation."""
        return self.stages[-1].score


class Failure(enum.StrEnum):
    """Why an evaluation gave no score."""

    ERROR = "error"  # the program raised, or has no entry point
    TIMEOUT = "timeout"  # it ran longer than its limit
    MEMORY = "memory"  # it asked for more memory than its limit
    CRASH = "crash"  # its process died
    OUTPUT = "output"  # it returned something else than its contract says
    REJECTED = "rejected"  # the outputs are well formed but not allowed
    SCREENED = "screened"  # a cheap stage found it too bad to be worth the next one


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """The verdict on one program. Either ``score`` or ``failure`` is None, never both.

    Attributes:
        score: the problem's score, unrounded.
        failure: why there is no score.
        message: one line that says what went wrong; empty for a valid program.
        metrics: all metrics of the problem, ``score`` among them.
        artifacts: text that may help the next attempt: ``traceback``, ``stdout``.
        seconds: wall seconds of the program's own run.
        peak_bytes: largest resident size of the program's process.
    """

    score: float | None
    failure: Failure | None
    message: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    peak_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A program with a valid score: what the search may choose as a parent."""

    id: str
    program: str
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """A program whose verdict is not in: it may be shown, without a score, but not be a parent."""

    id: str
    program: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """A child that got no score, and the verdict that says why."""

    id: str
    program: str
    evaluation: Evaluation


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """A step of a parent's lineage: what was asked about a program, and the model's answer.

    The answer became the next turn's candidate, or the parent itself.

    Attributes:
        candidate: the program that was asked about.
        operator: name of the operator that asked.
        failures: the failed attempts that were shown with it.
        answer: the completion.
        answer_ids: the same as sampled: other tokens than its text would be encoded to, perhaps.
        partner: the program that it was to be combined with.
        repairs: the failed attempt that was to be corrected.
    """

    candidate: Candidate
    operator: str
    failures: tuple[Attempt, ...]
    answer: str
    answer_ids: tuple[int, ...]
    partner: Candidate | None = None
    repairs: Attempt | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """What the search asks for next: K children of one parent.

    Attributes:
        iteration: counts from 0 over all islands; all randomness of the iteration derives from it,
            the island and the seed.
        parent: the program to change.
        history: the programs to be shown beside the parent, in the order to show them.
        operator: name of the operator that makes the change.
        k: number of children.
        seed: for the operator's own choices and the sampling of the children.
        failures: the last failed attempts at changing this parent, oldest first.
        lineage: how the parent came to be, from the first program on.
        compactions: how often the island's history was compacted before this proposal.
        island: for which it is; the parent and all that is shown are of its population.
        pending: the programs of the island whose verdicts are not in, in the order of their
            iterations and of the children in them; none in a run that shows no other programs.
        partner: of a crossover: the program to combine the parent with.
        repairs: of a repair: the failed attempt at changing the parent that is to be corrected;
            it is not among the failures.
        rule: by which the parent was chosen, as the parent policy names it; ``given`` where the
            search was told whom to take.
    """

    iteration: int
    parent: Candidate
    history: tuple[Candidate, ...]
    operator: str
    k: int
    seed: int
    failures: tuple[Attempt, ...] = ()
    lineage: tuple[Turn, ...] = ()
    compactions: int = 0
    island: int = 0
    pending: tuple[Pending, ...] = ()
    partner: Candidate | None = None
    repairs: Attempt | None = None
    rule: str = "given"

    @property
    def partner_id(self) -> str | None:
        """Id of the partner, if there is one."""
        return None if self.partner is None else self.partner.id

    @property
    def repairs_id(self) -> str | None:
        """Id of the attempt to be corrected, if there is one."""
        return None if self.repairs is None else self.repairs.id


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """What an infill leaves out of its parent, for the model to write.

    The child is the parent with the characters ``start:end`` replaced by ``before``, what the
    model wrote, and ``after``.

    Attributes:
        whole_lines: the model writes statements; otherwise it writes an expression on one line.
    """

    start: int
    end: int
    before: str = ""
    after: str = ""
    whole_lines: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Preference:
    """That a parent was taken because its prompt was cached, and what that cost and saved.

    Attributes:
        drawn: id of the parent that the search had drawn.
        score_given_up: by how much its score was better than that of the parent taken; below 0
            if it was worse.
        tokens_saved: prompt tokens that its prompt would have had to compute beyond.
    """

    drawn: str
    score_given_up: float
    tokens_saved: int


class Part(enum.StrEnum):
    """What a block of a prompt holds."""

    TASK = "task"  # the system message and the problem
    HISTORY = "history"  # an earlier program and its score
    PARENT = "parent"  # the program to change
    ANSWER = "answer"  # what the model itself wrote, in a transcript
    ASK = "ask"  # what is asked for; for an infill, the parent up to the gap


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A part of a prompt that was tokenised by itself, and is the same wherever it stands.

    Attributes:
        part: what it holds.
        text: for people.
        token_ids: the same as the model sees it.
        shows: ids of the programs that can be read in it, whole or as changes, in order.
    """

    part: Part
    text: str
    token_ids: tuple[int, ...]
    shows: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatFrame:
    """What a model's chat template puts round the messages.

    Attributes:
        opening: before the first user message; the system message stands in it.
        closing: between a user message and the answer.
        turn: between an answer and the next user message.
    """

    opening: str
    closing: str
    turn: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """One prompt for K children, and what the operator needs to read their completions.

    Attributes:
        blocks: what it consists of, in order.
        stop: strings that end a completion.
        max_tokens: the most tokens that a completion may have.
        banned: tokens that a completion may not hold; an infill bans the one that the parent
            goes on with, so that its children differ from it.
        grammar: EBNF that every completion has to follow; None for free text.
        schema: JSON schema, as text, that every completion has to follow; None for none.
        at_once: the most programs that one completion may hold, each of them a child. With 1, each
            child is a completion of its own.
        gap: what an infill leaves out of the parent; None for other operators.
    """

    blocks: tuple[Block, ...]
    stop: tuple[str, ...]
    max_tokens: int
    banned: tuple[int, ...] = ()
    grammar: str | None = None
    schema: str | None = None
    at_once: int = 1
    gap: Gap | None = None

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The prompt as the model sees it."""
        return tuple(itertools.chain.from_iterable(block.token_ids for block in self.blocks))

    @property
    def shows(self) -> tuple[str, ...]:
        """Ids of the programs that can be read in it, each once, in the order of their places."""
        return tuple(
            dict.fromkeys(itertools.chain.from_iterable(block.shows for block in self.blocks))
        )

    @property
    def text(self) -> str:
        """The prompt for people."""
        return "".join(block.text for block in self.blocks)


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """One finished completion, with vLLM's own token counts.

    Attributes:
        index: which of the K children it is.
        text: the completion.
        token_ids: the same as sampled, with the end-of-answer token if there was one.
        finish_reason: ``stop``, ``length`` or ``abort``.
        prompt_tokens: tokens of the prompt.
        cached_prompt_tokens: those of them whose KV was in the prefix cache.
        llm_seconds: its share of the engine's steps that it was in, each step shared out evenly.
    """

    index: int
    text: str
    token_ids: tuple[int, ...]
    finish_reason: str
    prompt_tokens: int
    cached_prompt_tokens: int
    llm_seconds: float

    @property
    def generated_tokens(self) -> int:
        """Tokens sampled."""
        return len(self.token_ids)


@dataclass(frozen=True, kw_only=True, slots=True)
class Parsed:
    """What an operator reads of one child in a completion.

    Attributes:
        program: the child's program; None if there is none that is valid Python.
        probability: that the model says the program has; None where it says none.
    """

    program: str | None
    probability: float | None = None


class Miss(enum.StrEnum):
    """Why a prompt token had to be computed; see ``engine.inference.misses``."""

    COLD = "cold"  # no earlier call of this session held the task
    NEW = "new"  # text that no earlier call of this session held
    MOVED = "moved"  # an earlier call held the text, behind another start
    COMPACTION = "compaction"  # the same, because the history was compacted
    EVICTED = "evicted"  # an earlier call held it behind the same start
    CONCURRENT = "concurrent"  # the same, and that call was still under way
    ALIGNMENT = "alignment"  # the end of the prompt, which fills no block of the cache


class Refusal(enum.StrEnum):
    """Why a child is not evaluated."""

    UNPARSED = "unparsed"  # no program could be read from the completion
    ABSENT = "absent"  # the completion held fewer programs than it was asked for
    UNDEFINED = "undefined"  # it would read a name that nothing defines
    UNCHANGED = "unchanged"  # the same program as its parent, by normalised AST
    DUPLICATE = "duplicate"  # the same program as an earlier child, by normalised AST
    SIMILAR = "similar"  # nearly the same as one of its island's programs, by embedding
    LONG = "long"  # too long to be shown to the model as a parent
    BUDGET = "budget"  # the run's budget was reached first

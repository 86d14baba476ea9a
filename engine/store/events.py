"""What a run writes down: seven kinds of events, each with a subject that it has once.

Of a call and its children they hold what TurboEvolve logs (section 6, "Logging and definitions"):
island, iteration, parent and programs shown, K, and for each child its rank, what became of it, its
score and its cell. The improvement is the score's difference from the parent's.

Covers: the events and their form as JSON. Does not cover where they are kept (``log.py``) or what
follows from them (``history.py``).
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from engine.core import Evaluation, Failure, Miss, Preference, Refusal


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """A process began to work on the run. Subject: its number, from 0.

    Attributes:
        number: sessions before this one.
        engine: version of the engine.
        fingerprint: the problem's, at the first session's start.
    """

    KIND: ClassVar[str] = "session"
    number: int
    engine: str
    fingerprint: str

    @property
    def subject(self) -> str:
        return str(self.number)


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A prompt is about to be sent, or was sent on a guess that came true. Subject: the iteration.

    Attributes:
        island: for which it is.
        parent: id of the program to change.
        rule: by which the parent was chosen: a way of the parent policy, or its name if it has one
            way; ``repair`` for a repair's, which is that of the attempt to be corrected; ``cached``
            where ``preference`` says why.
        shown: ids of the programs that the prompt shows besides the parent, in the order in which
            they are first shown: candidates, pending ones, failed attempts.
        known: events that stood in the log when it was composed. Asked again by a search that
            knows those, and that the candidates ``ahead`` are pending, it is the same.
        ahead: ids of candidates that it was composed to show though they were not recorded then:
            children of a guess that has come true since.
        guessed: whether it was begun before the verdicts that its parent depends on.
        preference: why the parent is not the one that the search drew; None if it is.
        partner: of a crossover: id of the program that the parent is combined with.
        repairs: of a repair: id of the failed attempt at changing the parent.
    """

    KIND: ClassVar[str] = "call"
    iteration: int
    island: int
    parent: str
    rule: str
    shown: tuple[str, ...] = ()
    operator: str
    k: int
    known: int
    ahead: tuple[str, ...] = ()
    guessed: bool
    prompt: str
    prompt_tokens: int
    temperatures: tuple[float, ...]
    seeds: tuple[int, ...]
    preference: Preference | None = None
    partner: str | None = None
    repairs: str | None = None

    @property
    def subject(self) -> str:
        return str(self.iteration)


@dataclass(frozen=True, kw_only=True, slots=True)
class Child:
    """A child was generated. Subject: its id, ``iteration.index``.

    Attributes:
        completion: the model's answer; empty for a child of an answer that lists several programs
            and is recorded, with its tokens and seconds, with an earlier child.
        completion_ids: the same as sampled.
        program: the program read from the completion; None if none could be read.
        refusal: why it is not evaluated; None for a candidate, whose verdict follows.
        missed: how many tokens of its prompt were computed, by reason.
        rank: its place in an answer that lists several programs, from 0; None for a child with an
            answer of its own, and for one that the answer does not hold.
        probability: that the model said it has; None if it said none.
    """

    KIND: ClassVar[str] = "child"
    id: str
    iteration: int
    index: int
    parent: str
    operator: str
    completion: str
    completion_ids: tuple[int, ...]
    finish_reason: str
    program: str | None
    refusal: Refusal | None
    prompt_tokens: int
    cached_prompt_tokens: int
    llm_seconds: float
    missed: Mapping[Miss, int] = field(default_factory=dict)
    rank: int | None = None
    probability: float | None = None

    @property
    def subject(self) -> str:
        return self.id

    @property
    def generated_tokens(self) -> int:
        """Tokens sampled."""
        return len(self.completion_ids)


@dataclass(frozen=True, kw_only=True, slots=True)
class Seed:
    """The run begins with this program of a pool too; its verdict follows. Subject: its id.

    Attributes:
        number: its place in the pool, from 0.
        source: where it was read: ``FOLDER/FILE`` or ``RUN/CANDIDATE``.
        islands: that begin with it, if it has a score.
    """

    KIND: ClassVar[str] = "seed"
    number: int
    source: str
    program: str
    islands: tuple[int, ...]

    @property
    def candidate(self) -> str:
        """Its id as a candidate."""
        return f"pool.{self.number}"

    @property
    def subject(self) -> str:
        return self.candidate


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """A candidate was evaluated. Subject: its id.

    Attributes:
        program: source text, for the initial program, which no child event holds; else None.
        cell: of a program with a score in the islands' archives, a bin for each of their features;
            None for one that has no cell, and in a run without an archive.
    """

    KIND: ClassVar[str] = "verdict"
    candidate: str
    score: float | None
    failure: Failure | None
    message: str
    seconds: float
    peak_bytes: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)
    program: str | None = None
    cell: tuple[int, ...] | None = None

    @property
    def subject(self) -> str:
        return self.candidate

    @staticmethod
    def of(
        candidate: str,
        evaluation: Evaluation,
        program: str | None = None,
        *,
        cell: tuple[int, ...] | None = None,
    ) -> Verdict:
        """Return the event that records ``evaluation``."""
        return Verdict(
            candidate=candidate,
            score=evaluation.score,
            failure=evaluation.failure,
            message=evaluation.message,
            seconds=evaluation.seconds,
            peak_bytes=evaluation.peak_bytes,
            metrics=dict(evaluation.metrics),
            artifacts=dict(evaluation.artifacts),
            program=program,
            cell=cell,
        )

    def evaluation(self) -> Evaluation:
        """Return the recorded evaluation."""
        return Evaluation(
            score=self.score,
            failure=self.failure,
            message=self.message,
            metrics=self.metrics,
            artifacts=self.artifacts,
            seconds=self.seconds,
            peak_bytes=self.peak_bytes,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenOff:
    """A cheap stage stopped screening candidates. Subject: its name.

    Attributes:
        iteration: the first one whose candidates skip it.
        correlation: its rank correlation with the full score, as estimated.
        error: two standard errors of the estimate, upwards.
        pairs: fully evaluated candidates that the estimate rests on.
    """

    KIND: ClassVar[str] = "screen_off"
    stage: str
    iteration: int
    correlation: float
    error: float
    pairs: int

    @property
    def subject(self) -> str:
        return self.stage


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenUp:
    """A call that was begun on a guess was given up. Subject: ``iteration.attempt``.

    Attributes:
        iteration: that it was begun for; in the same session, the call that was made instead has
            the same.
        attempt: guesses for this iteration that were given up before, in this session or others.
        island: for which it was.
        parent: the parent that was guessed.
        generated_tokens: of its children, all for nothing.
        prompt_tokens: of its children.
        cached_prompt_tokens: those of them whose KV was in the prefix cache.
        llm_seconds: that its children had of the engine.
    """

    KIND: ClassVar[str] = "given_up"
    iteration: int
    attempt: int
    island: int
    parent: str
    generated_tokens: int
    prompt_tokens: int
    cached_prompt_tokens: int
    llm_seconds: float

    @property
    def subject(self) -> str:
        return f"{self.iteration}.{self.attempt}"


Event = Session | Seed | Call | Child | Verdict | ScreenOff | GivenUp


def to_json(event: Event) -> str:
    """Return the event's fields as a JSON object; numbers keep all their digits.

    A metric that isn't finite becomes text, because JSON has no such numbers.

    Raises:
        ValueError: another number isn't finite.
    """
    fields = dataclasses.asdict(event)
    if isinstance(event, Verdict):
        fields["metrics"] = {
            name: value if math.isfinite(value) else str(value)
            for name, value in event.metrics.items()
        }
    return json.dumps(fields, allow_nan=False)


def from_json(kind: str, body: str) -> Event:
    """Return the event written by `to_json`.

    Raises:
        KeyError, TypeError, ValueError: there is no such kind of event, or it has other fields.
    """
    fields = json.loads(body)
    if kind == Session.KIND:
        return Session(**fields)
    if kind == Seed.KIND:
        return Seed(**{**fields, "islands": tuple(fields["islands"])})
    if kind == Call.KIND:
        for name in ("shown", "ahead", "temperatures", "seeds"):
            fields[name] = tuple(fields[name])
        preference = fields.pop("preference")
        return Call(**fields, preference=None if preference is None else Preference(**preference))
    if kind == Child.KIND:
        refusal, missed = fields.pop("refusal"), fields.pop("missed")
        completion_ids = tuple(fields.pop("completion_ids"))
        return Child(
            **fields,
            completion_ids=completion_ids,
            refusal=None if refusal is None else Refusal(refusal),
            missed={Miss(reason): int(tokens) for reason, tokens in missed.items()},
        )
    if kind == Verdict.KIND:
        failure, metrics, cell = (fields.pop(name) for name in ("failure", "metrics", "cell"))
        return Verdict(
            **fields,
            cell=None if cell is None else tuple(cell),
            failure=None if failure is None else Failure(failure),
            metrics={name: float(value) for name, value in metrics.items()},
        )
    if kind == ScreenOff.KIND:
        return ScreenOff(**fields)
    if kind == GivenUp.KIND:
        return GivenUp(**fields)
    raise ValueError(f"unknown kind of event {kind!r}")

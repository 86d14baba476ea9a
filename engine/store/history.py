"""What a run's events add up to: the state from which it goes on, and its totals.

The loop folds each event as it writes it, and a resume folds the events that it reads. So both
arrive at the same state.

Does not cover the search's own state, or reading a log (``replaying.py``).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.core import (
    INITIAL,
    Advice,
    Call,
    Child,
    Consultation,
    Direction,
    Failure,
    Fill,
    GivenUp,
    Guidance,
    Hint,
    Idea,
    Migrant,
    Miss,
    Refusal,
    Seed,
    Sent,
    Session,
    SwitchedOff,
    Tactics,
    Update,
    Verdict,
)
from engine.store.fills import FillTally
from engine.store.guidance import GuidanceRecord
from engine.store.ideas import IdeaRepository
from engine.store.log import Recorded


@dataclass(kw_only=True, slots=True)
class RunHistory:
    """A run so far.

    Attributes:
        direction: of the problem's score.
        events: that the log holds.
        sessions: all of them, in order.
        seeds: the programs of a pool that the run began with, by candidate id.
        children: every child by id, in the order they were generated.
        verdicts: every verdict by candidate id, the initial program's and the seeds' among them.
        calls: every call by iteration, in the order they were recorded.
        pending: the admitted children without a verdict by id, in the order they were generated.
        updates: the steps of training, in order.
        hints: those that were left, in order.
        fills: programs made without the model for idle evaluators, by candidate id, in order.
        filled: what they came to, by their makers.
        migrants: programs that other islands' runs sent, by candidate id, in order.
        sent: the epochs at whose end programs were sent to others.
        tactics: what the model said that should be tried, in order.
        advice: what the advisor said before each child, by the child's id.
        ideas: the advisor's, with what came of them.
        guidance: what a model wrote of how to go about the problem, with what came of it.
        rewrites: how it was asked for that before a child, by the child's id.
        guidance_tokens: that were generated for it; they are among the generated ones.
        advisor_tokens: that the advisor generated; they are among the generated ones, and those of
            its prompts are among the prompts', each for each answer.
        given_up: the calls that were begun on a guess and given up, in order.
        attempts: how many guesses for an iteration were given up.
        evaluated: children with a verdict.
        refusals: how many children each reason kept from an evaluation.
        missed: how many prompt tokens were computed, by reason.
        screened: candidates that a cheap stage kept from a full evaluation.
        switched_off: the cheap stages that stopped screening, by name.
        session_seconds: wall seconds of each session, up to its last event.
        wasted_tokens: tokens generated for guesses that were given up.
        wasted_prompt_tokens: tokens of their prompts, for each child.
        wasted_cached_prompt_tokens: those of them whose KV was in the prefix cache.
        since_best: candidates evaluated since the best one.
        longest_wait: the most candidates that were ever evaluated in a row without a new best.
    """

    direction: Direction
    events: int = 0
    sessions: list[Session] = field(default_factory=list)
    seeds: dict[str, Seed] = field(default_factory=dict)
    children: dict[str, Child] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    calls: dict[int, Call] = field(default_factory=dict)
    pending: dict[str, Child] = field(default_factory=dict)
    updates: list[Update] = field(default_factory=list)
    hints: list[Hint] = field(default_factory=list)
    fills: dict[str, Fill] = field(default_factory=dict)
    filled: dict[str, FillTally] = field(default_factory=dict)
    migrants: dict[str, Migrant] = field(default_factory=dict)
    sent: set[int] = field(default_factory=set)
    tactics: list[Tactics] = field(default_factory=list)
    advice: dict[str, Advice] = field(default_factory=dict)
    ideas: IdeaRepository = field(init=False)
    guidance: GuidanceRecord = field(init=False)
    rewrites: dict[str, Guidance] = field(default_factory=dict)
    guidance_tokens: int = 0
    advisor_tokens: int = 0
    given_up: list[GivenUp] = field(default_factory=list)
    attempts: Counter[int] = field(default_factory=Counter)
    evaluated: int = 0
    refusals: Counter[Refusal] = field(default_factory=Counter)
    missed: Counter[Miss] = field(default_factory=Counter)
    session_seconds: dict[int, float] = field(default_factory=dict)
    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    generated_tokens: int = 0
    llm_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    valid: int = 0
    screened: int = 0
    switched_off: dict[str, SwitchedOff] = field(default_factory=dict)
    best: Verdict | None = None
    wasted_tokens: int = 0
    wasted_prompt_tokens: int = 0
    wasted_cached_prompt_tokens: int = 0
    since_best: int = 0
    longest_wait: int = 0

    def __post_init__(self) -> None:
        self.ideas = IdeaRepository(direction=self.direction)
        self.guidance = GuidanceRecord(direction=self.direction)

    def fold(self, recorded: Recorded) -> None:
        """Take one event in."""
        self.events += 1
        self.session_seconds[recorded.session] = recorded.elapsed
        event = recorded.event
        if isinstance(event, Child):  # what there is most of comes first
            self._fold_child(event)
        elif isinstance(event, Verdict):
            self._fold_verdict(event)
        elif isinstance(event, Call):
            self.calls[event.iteration] = event
        elif isinstance(event, Session):
            self.sessions.append(event)
        elif isinstance(event, Seed):
            self.seeds[event.candidate] = event
        elif isinstance(event, Update):
            self.updates.append(event)
        elif isinstance(event, SwitchedOff):
            self.switched_off[event.stage] = event
        elif isinstance(event, GivenUp):
            self._fold_given_up(event)
        elif isinstance(event, Advice):
            self._fold_advice(event)
        elif isinstance(event, Guidance):
            self._fold_guidance(event)
        elif isinstance(event, Hint):
            self.hints.append(event)
        elif isinstance(event, Fill):
            self.fills[event.id] = event
        elif isinstance(event, Migrant):
            self.migrants[event.id] = event
        elif isinstance(event, Sent):
            self.sent.add(event.epoch)
        elif isinstance(event, Tactics):
            self._fold_tactics(event)
        if isinstance(event, (Child, Verdict, Idea, Advice)):
            self.ideas.fold(event, at=self.events)
        if isinstance(event, (Child, Verdict, Call, Guidance)):
            self.guidance.fold(event, at=self.events)

    def _fold_tactics(self, event: Tactics) -> None:
        self.tactics.append(event)
        self.prompt_tokens += event.prompt_tokens
        self.cached_prompt_tokens += event.cached_prompt_tokens
        self.generated_tokens += event.generated_tokens
        self.llm_seconds += event.llm_seconds

    @property
    def admitted(self) -> int:
        """Children that were evaluated or are about to be: what counts against the budget."""
        return len(self.children) - self.refusals.total()

    @property
    def first(self) -> tuple[str, ...]:
        """Ids of the programs that the run began with: the initial one and the seeds."""
        return (INITIAL, *self.seeds)

    def is_first(self, candidate: str) -> bool:
        """Whether the run began with a program."""
        return candidate == INITIAL or candidate in self.seeds

    def is_made(self, candidate: str) -> bool:
        """Whether a program is there that a verdict can be on."""
        is_own = candidate in self.children or candidate in self.fills
        return self.is_first(candidate) or is_own or candidate in self.migrants

    def is_refused(self, candidate: str) -> bool:
        """Whether a child was not to be evaluated, so that no verdict can be on it."""
        child = self.children.get(candidate)
        return child is not None and child.refusal is not None

    def is_asked_for(self, child: Child) -> bool:
        """Whether the call is there that made a child, of a parent with a score."""
        return child.iteration in self.calls and self.has_score(child.parent)

    def has_score(self, candidate: str) -> bool:
        """Whether a program was judged and has a score, so that it can be a parent."""
        verdict = self.verdicts.get(candidate)
        return verdict is not None and verdict.score is not None

    @property
    def best_score(self) -> float | None:
        """The best one so far; None before the first."""
        return None if self.best is None else self.best.score

    @property
    def guessed(self) -> int:
        """Calls that were begun on a guess which came true."""
        return sum(call.guessed for call in self.calls.values())

    @property
    def next_iteration(self) -> int:
        """The number of the next call."""
        return max(self.calls, default=-1) + 1

    @property
    def adapter(self) -> int:
        """Version of the adapter that a new call is sampled from; 0 for the model itself."""
        return self.updates[-1].version if self.updates else 0

    @property
    def judged(self) -> int:
        """Children that ended with a full score or a failure: all with a verdict but screened."""
        return self.evaluated - self.screened

    @property
    def hit_rate(self) -> float:
        """Cached prompt tokens / prompt tokens; 0 before the first prompt."""
        return self.cached_prompt_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def wall_seconds(self) -> float:
        """Wall seconds of all sessions, each up to its last event."""
        return sum(self.session_seconds.values())

    def made_by(self, candidate: str) -> str:
        """Return what made a program: ``model``, a maker of fills, or ``given`` if none did."""
        if candidate in self.fills:
            return self.fills[candidate].maker
        return "model" if candidate in self.children else "given"

    def parent_of(self, candidate: str) -> str | None:
        """Return the program that a child or a fill is a variant of; None of any other program."""
        made = self.children.get(candidate) or self.fills.get(candidate)
        return None if made is None else made.parent

    def lineage(self, candidate: str) -> list[str]:
        """Return the ids of a program and its ancestors in this run, the first one first."""
        found = [candidate]
        while (parent := self.parent_of(found[-1])) is not None:
            found.append(parent)
        return found[::-1]

    def island_of(self, candidate: str) -> int:
        """Return the island for which a child or a fill was made."""
        fill = self.fills.get(candidate)
        return (
            self.calls[self.children[candidate].iteration].island if fill is None else fill.island
        )

    def asked_before(self, child: str) -> Sequence[Consultation | Guidance]:
        """Return what the model was asked before a child was written."""
        advice, rewrite = self.advice.get(child), self.rewrites.get(child)
        consultations = () if advice is None else advice.consultations
        return consultations if rewrite is None else (rewrite, *consultations)

    def missing(self, call: Call) -> list[int]:
        """Return the indices of the children of ``call`` that are not recorded."""
        return [i for i in range(call.k) if f"{call.iteration}.{i}" not in self.children]

    def program_of(self, candidate: str) -> str:
        """Return the source text of a candidate."""
        if candidate == INITIAL:
            program = self.verdicts[INITIAL].program
        elif candidate in self.seeds:
            program = self.seeds[candidate].program
        elif candidate in self.fills:
            program = self.fills[candidate].program.text
        elif candidate in self.migrants:
            program = self.migrants[candidate].program.text
        else:
            child = self.children[candidate]
            program = None if child.program is None else child.program.text
        if program is None:
            raise KeyError(f"{candidate} has no program")
        return program

    def _fold_child(self, child: Child) -> None:
        self.children[child.id] = child
        self.prompt_tokens += child.prompt_tokens
        self.cached_prompt_tokens += child.cached_prompt_tokens
        self.generated_tokens += child.generated_tokens
        self.llm_seconds += child.llm_seconds
        if child.missed:
            self.missed.update(child.missed)
        if child.refusal is None:
            self.pending[child.id] = child
        else:
            self.refusals[child.refusal] += 1

    def _fold_advice(self, advice: Advice) -> None:
        self.advice[advice.child] = advice
        for each in advice.consultations:
            self.prompt_tokens += each.prompt_tokens
            self.cached_prompt_tokens += each.cached_prompt_tokens
            self.generated_tokens += len(each.answer_ids)
            self.advisor_tokens += len(each.answer_ids)
            self.llm_seconds += each.llm_seconds
            self.missed.update(each.missed)

    def _fold_guidance(self, guidance: Guidance) -> None:
        self.rewrites[guidance.child] = guidance
        self.prompt_tokens += guidance.prompt_tokens
        self.cached_prompt_tokens += guidance.cached_prompt_tokens
        self.generated_tokens += len(guidance.answer_ids)
        self.guidance_tokens += len(guidance.answer_ids)
        self.llm_seconds += guidance.llm_seconds
        self.missed.update(guidance.missed)

    def _fold_given_up(self, guess: GivenUp) -> None:
        self.given_up.append(guess)
        self.attempts[guess.iteration] += 1
        self.wasted_tokens += guess.generated_tokens
        self.wasted_prompt_tokens += guess.prompt_tokens
        self.wasted_cached_prompt_tokens += guess.cached_prompt_tokens

    def _fold_verdict(self, verdict: Verdict) -> None:
        self.verdicts[verdict.candidate] = verdict
        self.pending.pop(verdict.candidate, None)
        if (fill := self.fills.get(verdict.candidate)) is not None:
            tally = self.filled.setdefault(fill.maker, FillTally())
            parent = self.verdicts[fill.parent].score
            tally.fold(verdict, parent=parent, direction=self.direction)
        elif not self.is_first(verdict.candidate) and verdict.candidate not in self.migrants:
            self.evaluated += 1
            self.evaluation_seconds += verdict.evaluation.seconds
            self.valid += verdict.score is not None
            self.screened += verdict.evaluation.failure is Failure.SCREENED
            self.since_best += 1
        score, best = verdict.score, self.best_score
        if score is not None and (best is None or self.direction.better(score, best)):
            self.best = verdict
            self.since_best = 0
        self.longest_wait = max(self.longest_wait, self.since_best)

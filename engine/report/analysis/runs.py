"""Recorded runs as the analyses read them: each child beside its call, its parent and its fate.

Covers: reading the logs of runs whose scores compare, also of runs that go on or were killed, and
refusing logs whose events do not fit together. Does not cover what is made of them.
"""

import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine import config
from engine.budget import Account, Limit
from engine.core import INITIAL, Direction, Feature, Refusal, UserError
from engine.search.features import dimensions
from engine.settings import RunSettings
from engine.store import Call, Child, Recorded, RunHistory, Verdict, follow, read_log

_LARGEST = sys.float_info.max
_UNJUDGED = (Refusal.BUDGET, Refusal.FAILED)

# What a run had used up to some event: evaluated `candidates`, the initial program not counted;
# generated `tokens`, those of given-up guesses included; wall `seconds`; `money` at the prices of
# the run's budget.
Totals = Mapping[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """A child, the call that it is of, and what became of it.

    Attributes:
        child: as it was recorded.
        call: the same.
        verdict: None if it was refused or is not evaluated yet.
        parent_program: the text of its parent.
        gain: by how much its score is better than its parent's, below 0 if it is worse; None
            without a score.
        is_best: whether it was better than everything before when its verdict came.
    """

    child: Child
    call: Call
    verdict: Verdict | None
    parent_program: str
    gain: float | None
    is_best: bool

    @property
    def score(self) -> float | None:
        """None if it was refused, failed or has no verdict."""
        return None if self.verdict is None else self.verdict.score

    @property
    def is_better(self) -> bool:
        """Whether its score is better than its parent's."""
        return self.gain is not None and self.gain > 0

    @property
    def is_judged(self) -> bool:
        """Whether anybody has said anything of it: a budget's end or a failing engine says nothing.

        Rewards leave out the same children (`engine.learning.rewards.Outcome.is_judged`).
        """
        refusal = self.child.refusal
        return self.verdict is not None if refusal is None else refusal not in _UNJUDGED

    @property
    def place(self) -> int:
        """Its place in its call, from 1; in its answer, if that lists several programs."""
        return 1 + (self.child.index if self.child.rank is None else self.child.rank)

    @property
    def temperature(self) -> float | None:
        """At which it was sampled; None if its call does not say."""
        # An answer that lists several programs has one; so has the next, if it holds too few.
        index = 0 if self.child.rank is not None else self.child.index
        temperatures = self.call.temperatures
        return temperatures[index] if index < len(temperatures) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """A run's log, read.

    Attributes:
        name: the folder, as it was given.
        settings: the run's.
        history: what the log adds up to.
        trials: every child, in the order they were generated.
        totals: what had been used when each candidate's verdict came, the initial one's among them.
        at: wall seconds of all sessions when an event was recorded, by its kind and subject.
        bests: the scores that were better than everything before, by candidate id.
        judged_at: how many events the log held before each candidate's verdict.
        end: what was used in all.
        features: of its islands' archives; None for a run without.
        folder: where it lies; None for a log that was not read from one.
    """

    name: str
    settings: RunSettings
    history: RunHistory
    trials: Sequence[Trial]
    totals: Mapping[str, Totals]
    at: Mapping[tuple[str, str], float]
    bests: Mapping[str, float]
    judged_at: Mapping[str, int]
    end: Totals
    features: tuple[Feature, ...] | None
    folder: Path | None = None

    @property
    def judged(self) -> list[Trial]:
        """The trials that count where shares of children are taken (`Trial.is_judged`)."""
        return [each for each in self.trials if each.is_judged]

    def inspirations(self, call: Call) -> list[str]:
        """Return the programs that a call's prompt shows, without those that were pending then."""
        known, judged_at = call.known, self.judged_at
        return [each for each in call.shown if judged_at.get(each, known) < known]


def read_runs(folders: Sequence[Path]) -> tuple[RunRecord, ...]:
    """Read runs of one problem.

    Raises:
        UserError: a folder is not a run, given twice or damaged, or the scores do not compare.
    """
    config.check_folders(folders)
    first, *others = runs = tuple(map(_read, folders))
    for run in others:
        if run.history.sessions[0].fingerprint != first.history.sessions[0].fingerprint:
            problems = ", ".join(Path(each.settings.problem).name for each in (first, run))
            raise UserError(
                f"{first.name} and {run.name} are of different problems ({problems}), or of one "
                "that changed between them, so their scores do not compare; report them apart"
            )
    return runs


class GrowingRun:
    """A run as far as its log was read, which may be read on.

    Attributes:
        settings: the run's.
        history: what was taken in adds up to.
    """

    def __init__(
        self,
        *,
        name: str,
        settings: RunSettings,
        direction: Direction,
        declared: Sequence[Feature] = (),
        folder: Path | None = None,
    ) -> None:
        """Begin without an event; the arguments as in `record_of`."""
        self.history = RunHistory(direction=direction)
        self._account = Account(settings.budget, self.history)
        self.settings = settings
        self._name, self._folder = name, folder
        self._declared = declared
        self._features: tuple[Feature, ...] | None = None
        self._trials: dict[str, Trial] = {}
        self._totals: dict[str, Totals] = {}
        self._at: dict[tuple[str, str], float] = {}
        self._bests: dict[str, float] = {}
        self._judged_at: dict[str, int] = {}

    def take(self, events: Iterable[Recorded]) -> None:
        """Take in what the log goes on with; at first, the program that the run began with too.

        Raises:
            UserError: see `record_of`.
        """
        history, is_new = self.history, not self.history.events
        for event in follow(events, history, name=self._name):
            self._at[event.KIND, event.subject] = history.wall_seconds
            if isinstance(event, Verdict):
                self._totals[event.candidate] = _totals(self._account, history)
                self._judged_at[event.candidate] = history.events - 1
                if history.best is event and event.score is not None:
                    self._bests[event.candidate] = event.score
            if isinstance(event, Child):
                self._trials[event.id] = _trial(event, history, self._bests)
            elif isinstance(event, Verdict) and event.candidate in self._trials:
                child = history.children[event.candidate]
                self._trials[event.candidate] = _trial(child, history, self._bests)
        if is_new and self.settings.search.cells.policy == "grid":
            self._features = dimensions(
                self.settings.search.archive,
                initial_program=history.program_of(INITIAL),
                declared=self._declared,
            )

    def record(self) -> RunRecord:
        """Return the run as it stands; what is in it is not to be read once more was taken in."""
        return RunRecord(
            name=self._name,
            settings=self.settings,
            history=self.history,
            trials=tuple(self._trials.values()),
            totals=self._totals,
            at=self._at,
            bests=self._bests,
            judged_at=self._judged_at,
            end=_totals(self._account, self.history),
            features=self._features,
            folder=self._folder,
        )


def record_of(
    *,
    name: str,
    settings: RunSettings,
    direction: Direction,
    events: Iterable[Recorded],
    declared: Sequence[Feature] = (),
    folder: Path | None = None,
) -> RunRecord:
    """Return a run as it stands in its log.

    Args:
        name: of the run, as people are shown it.
        settings: the run's.
        direction: of the problem's score.
        events: the log.
        declared: the features that the problem names, for a run with an archive of them.
        folder: where it lies, if anywhere.

    Raises:
        UserError: the events do not fit together, or the problem names no features and should.
    """
    run = GrowingRun(
        name=name, settings=settings, direction=direction, declared=declared, folder=folder
    )
    run.take(events)
    return run.record()


def growing_run(folder: Path) -> GrowingRun:
    """Return the run in a folder, of which no event was taken in.

    Raises:
        UserError: its settings, or what its problem declares, can't be read.
    """
    settings = config.load_recorded(folder)
    direction, declared = config.recorded_scores(settings, folder=folder)
    return GrowingRun(
        name=os.fsencode(folder).decode(errors="replace"),
        settings=settings,
        direction=direction,
        declared=declared,
        folder=folder,
    )


def _read(folder: Path) -> RunRecord:
    events = tuple(read_log(folder))  # first: it says what is wrong with a folder that is no run
    run = growing_run(folder)
    run.take(events)
    return run.record()


def gain_of(candidate: str, history: RunHistory) -> float | None:
    """Return by how much a child's or a fill's score is better than its parent's.

    Below 0 if it is worse; None without a score or a parent.
    """
    verdict, parent = history.verdicts.get(candidate), history.parent_of(candidate)
    before = None if parent is None else history.verdicts[parent].score
    if before is None or verdict is None or verdict.score is None:
        return None
    gain = history.direction.key(before) - history.direction.key(verdict.score)
    # Two finite scores may be infinitely far apart, which JSON has no word for.
    return min(_LARGEST, max(-_LARGEST, gain))


def _trial(child: Child, history: RunHistory, bests: Collection[str]) -> Trial:
    return Trial(
        child=child,
        call=history.calls[child.iteration],
        verdict=history.verdicts.get(child.id),
        parent_program=history.program_of(child.parent),
        gain=gain_of(child.id, history),
        is_best=child.id in bests,
    )


def _totals(account: Account, history: RunHistory) -> Totals:
    used = account.used
    return {
        "candidates": history.evaluated,
        "tokens": used[Limit.TOKENS],
        "seconds": used[Limit.SECONDS],
        "money": used[Limit.MONEY],
    }

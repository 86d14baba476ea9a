"""What holds of every run, whatever befell it: one list, checked after each schedule.

Does not cover what its prompts show and what its answers become: ``prompt_invariants.py``.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lives import Life, quiet_model
from processes import children
from prompt_invariants import PROMPT_INVARIANTS, events_of
from schedules import Schedule

from engine.beginning import restore
from engine.core import INITIAL, Problem
from engine.pipeline import RunState
from engine.search.features import cell_of
from engine.store import Call, Child, Verdict, replay
from engine.syntax import read
from engine.timeline import MODEL, TIMELINE, read_events

_AHEAD = 3  # calls of an island that a search is asked for


def nothing_is_evaluated_twice(schedule: Schedule, problem: Problem, life: Life) -> None:
    """No program goes twice to a stage in a session, and none whose verdict is on disk."""
    given = Counter(life.submitted)
    assert not (twice := [each for each, count in given.items() if count > 1]), twice
    judged = {
        each.event.candidate: each.session
        for each in life.events
        if isinstance(each.event, Verdict)
    }
    again = [s for s in life.submitted if judged.get(s.candidate, s.session) < s.session]
    assert not again, again


def nothing_is_lost(schedule: Schedule, problem: Problem, life: Life) -> None:
    """Each call has its children, each child that was admitted its verdict, once.

    When time is up, verdicts that are still out are not awaited.
    """
    subjects = Counter((each.event.KIND, each.event.subject) for each in life.events)
    assert set(subjects.values()) == {1}
    events = events_of(life)
    children = [each for each in events if isinstance(each, Child)]
    calls = [each for each in events if isinstance(each, Call)]
    verdicts = {each.candidate for each in events if isinstance(each, Verdict)}
    admitted = {child.id for child in children if child.refusal is None}
    if schedule.settings.budget.seconds is None:
        assert verdicts == admitted | {INITIAL}
    assert verdicts <= admitted | {INITIAL} <= verdicts | {s.candidate for s in life.submitted}
    due = {(call.iteration, index) for call in calls for index in range(call.k)}
    assert Counter((child.iteration, child.index) for child in children) == Counter(due)


def the_budget_is_spent(schedule: Schedule, problem: Problem, life: Life) -> None:
    """As many candidates are evaluated as the budget has, where no clock ends the run before.

    No more are admitted either: the loop looks at the budget before it admits each child.
    """
    history = life.history
    assert history.evaluated + len(history.pending) == history.admitted <= life.due
    if schedule.settings.budget.seconds is None:
        assert history.evaluated == life.due


def the_log_says_all(schedule: Schedule, problem: Problem, life: Life) -> None:
    """Who reads the log has the history that the run had, and a search that goes on alike."""
    assert replay(life.events, problem.direction) == life.history
    told = restore(life.settings, problem, life.events, quiet_model(schedule))
    assert told.state.history == life.history
    assert not told.unfinished
    for island in range(life.state.search.islands):
        assert _standing(told.state, island) == _standing(life.state, island)


def _standing(state: RunState, island: int) -> tuple[object, ...]:
    search, next_ = state.search, state.history.next_iteration
    return (
        [search.ask(next_ + ahead, island=island) for ahead in range(_AHEAD)],
        search.programs(island),
        search.best(island, most=3),
        search.migrants(island, most=3),
        state.finished(island),
        state.last_call(island),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """What this process holds: descriptors, by what they lead to, threads, processes, mappings."""

    descriptors: Counter[str]
    threads: frozenset[str]
    processes: tuple[int, ...]
    shared: frozenset[str]
    temporary: frozenset[str]

    @classmethod
    def now(cls, temporary: Path) -> Held:
        """Look; ``temporary`` is the folder of temporary files."""
        maps = Path("/proc/self/maps").read_text().splitlines()
        return cls(
            descriptors=Counter(map(_link, Path("/proc/self/fd").iterdir())),
            # Python keeps a "Dummy" for each native thread that has logged, also when that ended.
            threads=frozenset(
                each.name for each in threading.enumerate() if not each.name.startswith("Dummy-")
            ),
            processes=tuple(children(os.getpid())),
            shared=frozenset(line for line in maps if "/dev/shm/" in line or "memfd:" in line),
            temporary=frozenset(map(str, temporary.iterdir())),
        )


def _link(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:  # that of the listing
        return ""


def nothing_is_left_behind(before: Held, after: Held, folder: Path) -> None:
    """The process holds what it held before, and the run's folder has nothing that is no result."""
    assert not (more := after.descriptors - before.descriptors), more
    assert after.threads <= before.threads, after.threads - before.threads
    assert after.processes == before.processes
    assert after.shared <= before.shared
    assert after.temporary <= before.temporary
    left = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    results = {"config.yaml", "run.db", "run.lock", TIMELINE}
    assert left - {"steering"} == results, left ^ results


def the_model_does_one_thing_at_a_time(folder: Path) -> None:
    """No step begins before the last one has ended, over all sessions."""
    steps = [
        each for each in read_events(folder / TIMELINE) if each.ph == "X" and each.tid == MODEL
    ]
    assert all(one.ts + one.dur <= next_.ts for one, next_ in itertools.pairwise(steps))


def in_turn(schedule: Schedule, problem: Problem, life: Life) -> None:
    """When a call is recorded, its island's earlier ones are over and its parent has a score."""
    over: dict[str, int] = {}  # where each child was done with: refused, or its verdict is in
    scores: dict[str, float | None] = {}
    calls: dict[int, list[Call]] = {}
    for position, event in enumerate(events_of(life)):
        if isinstance(event, Child) and event.refusal is not None:
            over[event.id] = position
        elif isinstance(event, Verdict):
            over[event.candidate] = position
            scores[event.candidate] = event.score
        elif isinstance(event, Call):
            before = calls.setdefault(event.island, [])
            ends = [over[f"{call.iteration}.{i}"] for call in before for i in range(call.k)]
            assert all(call.iteration < event.iteration for call in before)
            assert over[event.parent] < event.known
            assert scores[event.parent] is not None
            if event.guessed:
                # It was composed before all verdicts of its island were in, and recorded after.
                assert event.known <= max(ends)
            else:
                assert event.known == position
            before.append(event)


def the_search_had_its_way(schedule: Schedule, problem: Problem, life: Life) -> None:
    """Each call has the parent that the search chooses where it is recorded: so no guess is wrong.

    A call that is no guess has the search's K as well.
    """
    settings = schedule.settings
    told = restore(settings, problem, [], quiet_model(schedule))
    for recorded in life.events:
        event = recorded.event
        if isinstance(event, Call):
            proposal = told.state.search.ask(event.iteration, island=event.island)
            assert (proposal.parent.id, proposal.operator) == (event.parent, event.operator)
            assert event.rule == proposal.rule
            assert event.guessed or proposal.k == event.k
            assert (proposal.partner_id, proposal.repairs_id) == (event.partner, event.repairs)
        told.state.fold(recorded)


def verdicts_have_their_cells(schedule: Schedule, problem: Problem, life: Life) -> None:
    """Each score stands in a cell where there is an archive, and nothing else does."""
    features = problem.features if schedule.settings.search.archive == "problem" else None
    for name, verdict in life.history.verdicts.items():
        program, evaluation = life.history.program_of(name), verdict.evaluation
        assert verdict.cell == cell_of(read(program), evaluation, features=features)
        assert (verdict.cell is None) == (features is None or verdict.score is None)


Invariant = Callable[[Schedule, Problem, Life], None]
INVARIANTS: tuple[Invariant, ...] = (
    nothing_is_evaluated_twice,
    nothing_is_lost,
    the_budget_is_spent,
    the_log_says_all,
    in_turn,
    the_search_had_its_way,
    verdicts_have_their_cells,
    *PROMPT_INVARIANTS,
)
"""What is checked of each life."""

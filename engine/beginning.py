"""Where a run begins: at its first programs, or in the state that its log describes.

Covers: evaluating the initial program and those of a pool, and whether the first one can be a
parent; whether the problem is still the one that a run began with; replaying a log into a search
and a cascade, and finding the calls that a death cut short.
Does not cover where a pool's programs come from (``engine.pool``), or what a run does then
(``engine.assembly``).
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import engine
from engine.core import INITIAL, Child, Direction, Feature, Pending, Problem, Proposal, UserError
from engine.evaluation import Cascade, StagePool
from engine.inference import Model, find_weights
from engine.learning import check_learning
from engine.parts import Parts
from engine.pipeline import RunState
from engine.pool import PoolReading, seeds
from engine.problem import check_initial_verdict
from engine.prompts import Operator, Tokenizer
from engine.search.cells import Cells
from engine.search.features import cell_of, dimensions, measure
from engine.search.population import REPAIR
from engine.search.search import Search
from engine.search.tactics import Tactician
from engine.settings import RunSettings
from engine.store import Call, Event, Recorded, RunHistory, Session, Verdict
from engine.syntax import MAX_DEPTH, read

_SIZES_KEPT = 4096  # of the programs asked about last; a history has tens


def first_events(settings: RunSettings, parts: Parts, reading: PoolReading) -> list[Event]:
    """Evaluate what a run begins with: the initial program, and those of its pool.

    Args:
        settings: the run's.
        parts: that it works with.
        reading: what was read of the pool's sources.

    Returns:
        The events that record the programs and their verdicts.

    Raises:
        UserError: the initial program has no score, or one that the target is no better than, no
            cell in the archives, or no room in the model's context.
    """
    problem, features = parts.problem, archive_features(settings, parts.problem)
    first = _first_verdict(new_cascade(settings, problem, parts.evaluators), problem, features)
    return [
        first,
        *seeds(
            settings,
            reading,
            problem=problem,
            evaluators=parts.evaluators,
            fits=_room(problem, parts.model, parts.operators(settings)),
            features=features,
        ),
    ]


def check_first(settings: RunSettings, problem: Problem, events: Iterable[Event]) -> None:
    """Check that a run which is to learn can; call it before the run has a folder.

    Args:
        settings: the run's.
        problem: the run's.
        events: its first ones.

    Raises:
        UserError: its model can't be trained, or its reward lacks a target.
    """
    if settings.learning.method != "none":
        initial = next(each.score for each in events if isinstance(each, Verdict))
        assert initial is not None  # or it could not begin
        weights = find_weights(settings.model)
        check_learning(settings.learning, problem=problem, initial=initial, weights=weights)


def _first_verdict(
    cascade: Cascade, problem: Problem, features: Sequence[Feature] | None
) -> Verdict:
    """Evaluate the initial program at every stage; a stage that it fails would fail all others."""
    cascade.submit(candidate_id=INITIAL, program=problem.initial_program, iteration=-1)
    ((_, evaluation),) = cascade.completed(timeout=None)
    check_initial_verdict(problem, evaluation)
    program = read(problem.initial_program)
    if program is None:
        raise UserError(
            f"the initial program of {problem.folder} is nested over {MAX_DEPTH} levels; flatten it"
        )
    cell = cell_of(program, evaluation, features=features)
    if features is not None and cell is None:  # nothing could be a parent
        values = measure(program, metrics=evaluation.metrics)
        lacks = next(each.name for each in features if math.isnan(values.get(each.name, math.nan)))
        raise UserError(
            f"the initial program of {problem.folder} has no feature {lacks!r}; it has "
            f"{', '.join(sorted(values))}: give one of them in problem.yaml"
        )
    return Verdict(candidate=INITIAL, evaluation=evaluation, program=program.text, cell=cell)


def _room(
    problem: Problem, model: Model, operators: Mapping[str, Operator]
) -> Callable[[str], bool]:
    """Return what says whether every prompt has room for a program; the initial one needs it."""
    rooms = {name: operator.longest_parent for name, operator in operators.items()}
    name, longest = min(rooms.items(), key=lambda each: each[1])
    tokens = len(model.encode(problem.initial_program, plain=True))
    if tokens > longest:
        raise UserError(
            f"the initial program of {problem.folder} has {tokens} tokens, and a prompt of "
            f"operator {name} has room for {max(0, longest)} beside its task; raise "
            "model.max_model_len"
        )
    return lambda program: len(model.encode(program)) <= longest


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored:
    """A run as its log leaves it.

    Attributes:
        state: everything that is recorded.
        unfinished: the calls whose children are not all recorded, as they were proposed.
    """

    state: RunState
    unfinished: tuple[Proposal, ...]


def restore(
    settings: RunSettings, problem: Problem, events: Sequence[Recorded], tokenizer: Tokenizer
) -> Restored:
    """Return the run that ``events`` record, with a search that knows all of it."""
    told = [each.event for each in events]
    children = {event.id: event for event in told if isinstance(event, Child)}
    recorded_of = Counter(child.iteration for child in children.values())
    calls = [event for event in told if isinstance(event, Call)]
    cut_short = [call for call in calls if recorded_of[call.iteration] < call.k]
    state = RunState(
        history=RunHistory(direction=problem.direction),
        search=Search(
            settings=settings.search,
            width=settings.width,
            islands=settings.islands,
            prompts=settings.prompts,
            direction=problem.direction,
            seed=settings.seed,
            size=functools.lru_cache(maxsize=_SIZES_KEPT)(lambda text: len(tokenizer.encode(text))),
            features=archive_features(settings, problem),
            tactician=_tactician(settings, direction=problem.direction),
        ),
        workers=settings.evaluation.workers,
    )
    proposals: dict[int, Proposal] = {}
    for recorded in events:
        proposals |= _asked_now(cut_short, state, children)
        state.fold(recorded)
    proposals |= _asked_now(cut_short, state, children)
    return Restored(state=state, unfinished=tuple(proposals[call.iteration] for call in cut_short))


def _tactician(settings: RunSettings, *, direction: Direction) -> Tactician | None:
    if settings.tactics.when == "none":
        return None
    shown_by = settings.asking_operators - {REPAIR}  # which is asked to keep what was tried
    return Tactician(settings.tactics, direction=direction, shown_by=shown_by)


def _asked_now(
    calls: Iterable[Call], state: RunState, children: Mapping[str, Child]
) -> dict[int, Proposal]:
    """Return the proposals of the calls that were composed when the log was as long as now.

    Args:
        calls: that are looked at.
        state: as of now.
        children: all that are recorded, later ones too: a prompt may show some that were not yet.
    """
    return {
        call.iteration: state.search.recall(
            call.iteration,
            island=call.island,
            choice=call,
            ahead=tuple(_pending(children[each]) for each in call.ahead),
        )
        for call in calls
        if call.known == state.history.events
    }


def _pending(child: Child) -> Pending:
    assert child.program is not None  # or no prompt had shown it
    return Pending(id=child.id, program=child.program.text)


def archive_features(settings: RunSettings, problem: Problem) -> Cells | None:
    """Return the features of a run's archives, cut into cells; None for a run without.

    Raises:
        UserError: the problem is to name them and names none.
    """
    features = dimensions(
        settings.search.archive,
        initial_program=problem.initial_program,
        declared=problem.features,
    )
    cells = settings.search.cells
    return None if features is None else cells.make(features, seed=settings.seed)


def new_cascade(settings: RunSettings, problem: Problem, pool: StagePool) -> Cascade:
    """Return a cascade over ``pool`` that knows nothing yet."""
    cascade = settings.evaluation.cascade
    return Cascade(pool=pool, problem=problem, settings=cascade, seed=settings.seed)


def told_cascade(
    settings: RunSettings, problem: Problem, history: RunHistory, pool: StagePool
) -> Cascade:
    """Return a cascade over ``pool`` that knows everything that is recorded."""
    cascade = new_cascade(settings, problem, pool)
    for verdict in history.verdicts.values():
        if verdict.candidate in history.migrants:  # judged elsewhere: this one never heard of it
            continue
        child = history.children.get(verdict.candidate)
        iteration = -1 if child is None else child.iteration
        cascade.tell(verdict.candidate, verdict.evaluation, iteration=iteration)
    cascade.resume(history.switched_off)
    return cascade


def begun_session(number: int, problem: Problem) -> Session:
    """Return the event that says that this process began to work on a run."""
    return Session(number=number, engine=engine.__version__, fingerprint=problem.fingerprint)


def check_unchanged(problem: Problem, first: Session, *, folder: Path) -> None:
    """Check that what a run that goes on would find compares with what it has found.

    Args:
        problem: the run's, as it is now.
        first: the run's first session.
        folder: the run's.

    Raises:
        UserError: what decides the problem's scores has changed since.
    """
    if first.fingerprint != problem.fingerprint:
        raise UserError(
            f"{problem.folder}, its data or a kernel of its has changed since {folder} "
            "began, so scores would not compare; bring the files back, or start a new run"
        )

"""What a log's events add up to, and whether it holds all that they refer to."""

from collections.abc import Iterable, Iterator

from engine.core import (
    INITIAL,
    Advice,
    Call,
    Child,
    Direction,
    Event,
    Fill,
    UserError,
    Verdict,
)
from engine.store.history import RunHistory
from engine.store.log import Recorded


def replay(
    events: Iterable[Recorded], direction: Direction, *, name: object = "the run"
) -> RunHistory:
    """Return what the events of a run add up to.

    Raises:
        UserError: `follow` does.
    """
    history = RunHistory(direction=direction)
    for _ in follow(events, history, name=name):
        pass
    return history


def follow(events: Iterable[Recorded], history: RunHistory, *, name: object) -> Iterator[Event]:
    """Fold the events of a run into a history, and yield each once that is done.

    Raises:
        UserError: one refers to something that the log of the run ``name`` does not hold, or the
            log does not hold how the run began.
    """
    for recorded in events:
        event, lacks = recorded.event, None
        if isinstance(event, Child) and history.is_made(event.id):
            lacks = f"program {event.id} is there twice"
        elif isinstance(event, Child) and not history.is_asked_for(event):
            lacks = f"child {event.id} has no call, or no parent with a score"
        if isinstance(event, Child) and event.refusal is None and event.program is None:
            lacks = f"child {event.id} is to be evaluated and has no program"
        if isinstance(event, Fill) and not history.has_score(event.parent):
            lacks = f"fill {event.number} is a variant of {event.parent}, which has no score"
        if isinstance(event, Verdict) and not history.is_made(event.candidate):
            lacks = f"nobody made candidate {event.candidate}"
        if isinstance(event, Verdict) and history.is_refused(event.candidate):
            lacks = f"child {event.candidate} was refused and has a verdict"
        if isinstance(event, Verdict) and event.candidate == INITIAL and event.program is None:
            lacks = "the initial program is missing"
        if isinstance(event, Advice) and not history.ideas.knows(event.idea):
            lacks = f"nobody had idea {event.idea}"
        if isinstance(event, Advice) and history.is_made(event.child):
            lacks = f"the advice for child {event.child} follows it"
        if isinstance(event, Call) and not history.guidance.knows(event.guidance):
            lacks = f"nobody wrote guidance {event.guidance}"
        if lacks:
            raise UserError(f"{name}'s log is damaged: {lacks}; restore it from a copy")
        history.fold(recorded)
        yield event
    if not history.sessions or INITIAL not in history.verdicts:
        raise UserError(f"{name}'s log is damaged: it has no beginning")

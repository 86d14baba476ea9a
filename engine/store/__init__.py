"""Store: one event log per run; everything else about a run is rebuilt from it."""

from engine.store.events import Call, Child, Event, GivenUp, ScreenOff, Seed, Session, Verdict
from engine.store.folder import create_run
from engine.store.history import RunHistory, check_follows
from engine.store.log import EventLog, Recorded, read_log

__all__ = [
    "Call",
    "Child",
    "Event",
    "EventLog",
    "GivenUp",
    "Recorded",
    "RunHistory",
    "ScreenOff",
    "Seed",
    "Session",
    "Verdict",
    "check_follows",
    "create_run",
    "read_log",
]

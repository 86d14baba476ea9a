"""Store: one event log per run; everything else about a run is rebuilt from it."""

from engine.store.events import Call, Child, Event, GivenUp, Seed, Session, Verdict
from engine.store.folder import create_run
from engine.store.history import RunHistory, check_follows
from engine.store.log import EventLog, Log, Recorded, read_log
from engine.store.memory import MemoryLog

__all__ = [
    "Call",
    "Child",
    "Event",
    "EventLog",
    "GivenUp",
    "Log",
    "MemoryLog",
    "Recorded",
    "RunHistory",
    "Seed",
    "Session",
    "Verdict",
    "check_follows",
    "create_run",
    "read_log",
]

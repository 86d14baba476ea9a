"""Store: one event log per run; everything else about a run is rebuilt from it."""

from engine.core.events import Call, Child, Event, Fill, GivenUp, Hint, Seed, Session, Verdict
from engine.store.disk import check_place, warn_of_network
from engine.store.folder import create_run, whole_folder
from engine.store.guidance import GuidanceRecord, TriedGuidance
from engine.store.history import RunHistory
from engine.store.ideas import Experiment, IdeaRepository, Outcome, TriedIdea
from engine.store.lock import is_held, locked
from engine.store.log import EventLog, Recorded, check_goes_on, read_event, read_log
from engine.store.places import check_server, drop_database, identity, is_run, log_file, stamp
from engine.store.replaying import follow, replay

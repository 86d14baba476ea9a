"""Messages and events as lines of JSON.

A line is one object. All have ``time`` (UTC, ISO 8601) and ``level``; a message has ``logger`` and
``message``, an event ``run``, ``session``, ``event`` (its kind) and its fields. Left out are long
texts and tokens (prompts, answers, programs, tracebacks of candidates): they are in the run's log.
A number that is not finite is null.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from engine.core import Event

_LEFT_OUT = frozenset(
    {
        "answer",
        "answer_ids",
        "artifacts",
        "completion",
        "completion_ids",
        "consultations",
        "logprobs",
        "prompt",
        "reasoning",
        "sampled_from",
        "seeds",
    }
)
_events = logging.getLogger("brood.events")


class EventLines:
    """Logs each event to the logger ``brood.events``, with its fields as the record's ``event``."""

    def __init__(self, *, run: str, session: int) -> None:
        """Name the run, and its session."""
        self._of = {"run": run, "session": session}

    def __call__(self, events: Sequence[Event]) -> None:
        """Log events that are on disk."""
        for event in events:
            fields = {**self._of, "event": event.KIND, **facts(event)}
            _events.info("%s %s", event.KIND, event.subject, extra={"event": fields})


class JsonFormatter(logging.Formatter):
    """Makes a line of JSON of a record."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
        }
        event = getattr(record, "event", None)
        if isinstance(event, Mapping):
            fields |= event
        else:
            fields |= {"logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        # Half a surrogate pair, which a model may write, is no UTF-8.
        return msgspec.json.encode(_sound(fields)).decode()


def facts(event: Event) -> dict[str, Any]:
    """Return the fields of an event that are short: figures, names, reasons."""
    fields = {"subject": event.subject}
    for name, value in msgspec.to_builtins(event).items():
        if name in _LEFT_OUT:
            continue
        if name == "evaluation":
            fields |= {key: each for key, each in value.items() if key not in _LEFT_OUT}
        elif name != "program":
            fields[name] = value
        elif isinstance(value, Mapping):
            fields["program_key"] = value["key"]
    return fields


def _sound(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, Mapping):
        return {_sound(key): _sound(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_sound(each) for each in value]
    return value

"""What people and processes do to a run: sessions, and hints."""

from dataclasses import dataclass

from engine.core.events.event import RecordedEvent


@dataclass(frozen=True, kw_only=True, slots=True)
class Session(RecordedEvent):
    """A process began to work on the run. Subject: its number, from 0.

    Attributes:
        number: sessions before this one.
        engine: version of the engine.
        fingerprint: the problem's, at the first session's start.
    """

    KIND = "session"
    NAMED_BY = ("number",)
    number: int
    engine: str
    fingerprint: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Hint(RecordedEvent):
    """Somebody who watches the run left a hint; prompts that are composed later show it.

    Subject: its number.

    Attributes:
        number: hints before this one.
        text: in place of the last hint's; empty to show none.
    """

    KIND = "hint"
    NAMED_BY = ("number",)
    number: int
    text: str

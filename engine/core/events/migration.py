"""Migration between islands that have a log each."""

from dataclasses import dataclass

from engine.core.events.event import RecordedEvent
from engine.core.program import Program


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent(RecordedEvent):
    """An island sends its best programs to its neighbours, who read this in its log.

    Subject: its epoch.

    Attributes:
        epoch: how many times it has sent before, and once more; -1 when it is over and sends no
            more.
        candidates: ids of its own best programs, the best first.
    """

    KIND = "sent"
    NAMED_BY = ("epoch",)
    epoch: int
    candidates: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Migrant(RecordedEvent):
    """A program that another island sent has arrived; its verdict there follows. Subject: its id.

    Attributes:
        number: migrants before this one.
        origin: number of the island that sent it.
        candidate: its id there.
        program: the program.
    """

    KIND = "migrant"
    NAMED_BY = ("origin", "candidate")
    number: int
    origin: int
    candidate: str
    program: Program

    @property
    def id(self) -> str:
        """Under which its verdict stands here, and under which it is a candidate."""
        return f"i{self.origin}.{self.candidate}"

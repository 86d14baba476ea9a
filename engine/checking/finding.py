"""What a check found: good, doubtful or wrong, where, and what to do about it."""

import enum
from dataclasses import dataclass


class Level(enum.StrEnum):
    """How much a finding matters."""

    OK = "ok"
    WARNING = "warning"  # the search works, but what it finds may mean less
    ERROR = "error"  # what the search finds can't be trusted


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One line of a check's result.

    Attributes:
        level: how much it matters.
        check: what was looked at, in a word.
        message: what was found.
        where: ``FILE:LINE``, or ``FILE``; empty for what stands nowhere.
        remedy: what to do; empty for what is good.
    """

    level: Level
    check: str
    message: str
    where: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.level:<8} {self.check:<10} {where}{self.message}{remedy}"


def good(check: str, message: str) -> Finding:
    """Return a finding of level `Level.OK`."""
    return Finding(level=Level.OK, check=check, message=message)


def doubtful(check: str, message: str, *, where: str, remedy: str) -> Finding:
    """Return a finding of level `Level.WARNING`."""
    return Finding(level=Level.WARNING, check=check, message=message, where=where, remedy=remedy)


def wrong(check: str, message: str, *, where: str, remedy: str) -> Finding:
    """Return a finding of level `Level.ERROR`."""
    return Finding(level=Level.ERROR, check=check, message=message, where=where, remedy=remedy)

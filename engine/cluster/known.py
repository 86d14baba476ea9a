"""Verdicts that islands share: a program that two of them find is evaluated once.

Within a process they are at hand; between processes a table of the run's database has them, if a
server has the run's events. What the server can't be asked is evaluated, which costs time and
nothing else.
"""

import hashlib
from dataclasses import replace

from engine.core import Evaluation
from engine.store.verdicts import VerdictTable


def key_of(program: str, *, stage: int | None) -> str:
    """Return what a program's evaluation at a stage is known by."""
    return hashlib.sha256(f"{stage}\n{program}".encode(errors="surrogatepass")).hexdigest()


class Known:
    """Scores by their keys. Failures are nobody's business: another machine may be faster."""

    def __init__(self, table: VerdictTable | None) -> None:
        """Know nothing yet but what a table has; None for no table."""
        self._here: dict[str, Evaluation] = {}
        self._table = table

    def find(self, key: str) -> Evaluation | None:
        """Return an evaluation that was made elsewhere, and took no time here."""
        found = self._here.get(key)
        if found is None and self._table is not None:
            found = self._table.find(key)
        return None if found is None else replace(found, seconds=0.0)

    def put(self, key: str, evaluation: Evaluation) -> None:
        """Take in an evaluation."""
        if evaluation.score is None:
            return
        self._here[key] = evaluation
        if self._table is not None:
            self._table.put(key, evaluation)

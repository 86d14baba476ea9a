"""A run's figures and programs at one moment, as a browser is sent them."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.core import UserError
from engine.dashboard.run import WatchedRun
from engine.report.analysis import RunRecord
from engine.report.figures import Aims, Figure, figures_of
from engine.report.figures.thinning import thinned
from engine.report.files import aims_of
from engine.report.page.assets import plain, words
from engine.report.tables.programs import Row, of_run

_ROWS = 40  # of a figure's table
_PAGE = 20  # programs of a page of the list
_COLUMNS = ("id", "score", "gain", "operator", "island", "parent", "seconds", "message")


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A run at one moment.

    Attributes:
        run: of which it is.
        changes: of the run, when it was made.
        made: when, in seconds of the monotonic clock.
        seconds: that making it took.
        figures: by name, in their order: each as JSON, and its digest.
        error: why the figures lack something; empty if they are whole.
        programs: rows of `engine.report.tables.programs`, in the order of generation.
        ranks: each row's place when the best comes first.
    """

    run: WatchedRun
    changes: int
    made: float
    seconds: float
    figures: Mapping[str, tuple[str, str]]
    error: str
    programs: Sequence[Row]
    ranks: Sequence[int]

    def row(self, name: str) -> Row | None:
        """Return a program's row; None if there is none of this id."""
        return next((each for each in self.programs if each["id"] == name), None)

    def page(self, *, order: str, outcome: str, sought: str, page: int) -> dict[str, Any]:
        """Return a page of the list of programs.

        Args:
            order: ``best``, ``oldest`` or ``newest`` first.
            outcome: of those that are listed; empty for all.
            sought: what their id, operator or message has to hold, in small letters.
            page: its number, from 0; one that is too large is the last one.
        """
        places = [self.ranks, range(len(self.programs)), range(len(self.programs) - 1, -1, -1)][
            0 if order == "best" else 1 if order == "oldest" else 2
        ]
        chosen = [
            self.programs[place]
            for place in places
            if _fits(self.programs[place], outcome=outcome, sought=sought)
        ]
        first = min(max(0, page), max(0, len(chosen) - 1) // _PAGE) * _PAGE
        return {
            "rows": [shown_row(each) for each in chosen[first : first + _PAGE]],
            "first": first,
            "total": len(chosen),
            "outcomes": sorted({_outcome(each) for each in self.programs}),
        }


def snapshot_of(run: WatchedRun) -> Snapshot:
    """Return a run as far as it is read, which is not nothing."""
    assert run.growing is not None
    began, record = time.monotonic(), run.growing.record()
    programs = of_run(record)
    key = record.history.direction.key
    best = sorted(
        range(len(programs)),
        key=lambda place: _rank(programs[place]["score"], key),
    )
    found, error = _figures(record, programs)
    figures = {each.name: _encoded(each) for each in found}
    return Snapshot(
        run=run,
        changes=run.changes,
        made=time.monotonic(),
        seconds=time.monotonic() - began,
        figures=figures,
        error=error,
        programs=programs,
        ranks=best,
    )


def shown_row(row: Row) -> dict[str, Any]:
    """Return a program's row as the list of programs has it."""
    kept = {column: row[column] for column in _COLUMNS}
    found: dict[str, Any] = plain({**kept, "best": row["new_best"], "outcome": _outcome(row)})
    return found


def _figures(record: RunRecord, programs: Sequence[Row]) -> tuple[list[Figure], str]:
    """Return the figures, and why they lack something: files beside the log may break meanwhile."""
    aims, error = Aims(), ""
    try:
        aims = aims_of([record])
    except (UserError, OSError) as broken:  # the problem's declaration
        error = str(broken)
    try:
        return figures_of(record, aims=aims, programs=programs), error
    except (UserError, OSError) as broken:  # the timeline
        return [], str(broken)


def _encoded(figure: Figure) -> tuple[str, str]:
    rows = thinned(figure.table.rows, _ROWS)
    content = {
        "name": figure.name,
        "title": figure.title,
        "alt": figure.alt,
        "note": figure.note,
        "spec": figure.spec,
        "data": figure.data,
        "columns": [words(key) for key in rows[0]] if rows else [],
        "rows": [list(row.values()) for row in rows],
        "total": len(figure.table.rows),
    }
    text = json.dumps(plain(content), allow_nan=False, separators=(",", ":"))
    return text, hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _rank(score: float | None, key: Any) -> tuple[int, float]:
    return (1, 0.0) if score is None else (0, key(score))


def _outcome(row: Row) -> str:
    return f"{row['outcome']}: {row['reason']}" if row["reason"] else row["outcome"]


def _fits(row: Row, *, outcome: str, sought: str) -> bool:
    if outcome and _outcome(row) != outcome:
        return False
    return not sought or sought in f"{row['id']} {row['operator']} {row['message']}".lower()

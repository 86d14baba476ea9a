"""What an analysis hands back: all its numbers, and the tables that people look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Cell = str | int | float | None
"""None where there is nothing to tell."""

_GAP = "  "


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table to be printed.

    Attributes:
        title: what it shows, in one line.
        columns: their heads.
        rows: one cell for each column.
        note: what has to be known to read it; empty if nothing.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def text(self) -> str:
        """Return the table as lines of aligned columns, words on the left, numbers on the right."""
        if not self.rows:
            return f"{self.title}: nothing to show\n"
        cells = [[_shown(each) for each in row] for row in self.rows]
        is_text = [
            any(isinstance(row[column], str) and not _is_percent(row[column]) for row in self.rows)
            for column in range(len(self.columns))
        ]
        widths = [max(map(len, column)) for column in zip(self.columns, *cells, strict=True)]
        lines = [self.title]
        for row in (self.columns, *cells):
            aligned = (
                each.ljust(width) if left else each.rjust(width)
                for each, width, left in zip(row, widths, is_text, strict=True)
            )
            lines.append(_GAP.join(["", *aligned]).rstrip())
        return "\n".join([*lines, *([self.note] if self.note else [])]) + "\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """What an analysis found.

    Attributes:
        figures: all of its numbers, as JSON has them.
        tables: what is shown of them.
    """

    figures: Mapping[str, Any]
    tables: Sequence[Table]


def percent(share: float | None) -> str | None:
    """Return a share as a cell."""
    return None if share is None else f"{share:.1%}"


def _is_percent(cell: Cell) -> bool:
    return isinstance(cell, str) and cell.endswith("%")


def _shown(cell: Cell) -> str:
    if cell is None:
        return "-"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)

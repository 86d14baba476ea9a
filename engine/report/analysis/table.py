"""What an analysis hands back: all its numbers, and the tables that people look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import rich.table
from rich.console import Console
from rich.text import Text

Row = Mapping[str, Any]
"""Figures by key; None where there is nothing to tell."""

Column = str | tuple[str, str | Callable[[Row], Any]]
"""The key of the figure that a column shows; or its head, and the key or what makes the cell."""

_WIDEST = 10**9  # characters of a line: nothing is cut off or wrapped


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table to be printed.

    Attributes:
        title: what it shows, in one line.
        columns: what it shows of a row.
        rows: the figures.
        note: what has to be known to read it; empty if nothing.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    note: str = ""

    def text(self) -> str:
        """Return the table as lines of aligned columns, words on the left, numbers on the right."""
        if not self.rows:
            return f"{self.title}: nothing to show\n"
        table = rich.table.Table(box=None, padding=(0, 0, 0, 2))
        columns = []
        for column in self.columns:
            head, pick = (column.replace("_", " "), column) if isinstance(column, str) else column
            cells = [row[pick] if isinstance(pick, str) else pick(row) for row in self.rows]
            is_text = any(isinstance(cell, str) and not cell.endswith("%") for cell in cells)
            table.add_column(Text(head), justify="left" if is_text else "right")
            columns.append([Text(_shown(cell)) for cell in cells])
        for row in zip(*columns, strict=True):
            table.add_row(*row)
        output = StringIO()
        Console(file=output, width=_WIDEST).print(table)
        lines = [line.rstrip() for line in output.getvalue().splitlines()]
        return "\n".join([self.title, *lines, *([self.note] if self.note else [])]) + "\n"


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


def share(key: str) -> Callable[[Row], str | None]:
    """Return what makes a cell of a figure that is a share."""
    return lambda row: percent(row[key])


def _shown(cell: Any) -> str:
    if cell is None:
        return "-"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)

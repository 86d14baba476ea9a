"""Reading columns of the user's CSV files, with errors that name the line.

Covers: comma-separated UTF-8 text with a header, rows one at a time, so that a file of millions
of rows needs no memory here. Columns may come in any order, and ones that nobody asked for are
skipped. Does not cover what the values mean.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.core import UserError


def read_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield for each row of ``path`` its line number and its values of ``columns``, in their order.

    Raises:
        UserError: the file is missing, is not UTF-8 CSV, lacks a column, or has a row with
            another number of values than the header.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            places = [_place(column, header, path) for column in columns]
            for row in reader:
                if not row:  # an empty line, as at the end of many files
                    continue
                if len(row) != len(header):
                    raise UserError(
                        f"{path}, line {reader.line_num}: {len(row)} values in a file of "
                        f"{len(header)} columns; mend or remove the line"
                    )
                yield reader.line_num, [row[place] for place in places]
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}; give a CSV file") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text; give a CSV file") from error
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num} is not valid CSV: {error}") from error


def _place(column: str, header: Sequence[str], path: Path) -> int:
    if column not in header:
        raise UserError(f"{path} has no column {column!r} in its first line; add it")
    return header.index(column)


def parse_number(text: str, *, path: Path, line: int, column: str) -> float:
    """Return ``text`` as a finite number.

    Raises:
        UserError: it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{path}, line {line}: {column} is {text!r}; it must be a finite number")
    return value


def parse_id(text: str, *, path: Path, line: int, column: str) -> int:
    """Return ``text`` as an integer from 0 to 2^63 - 1.

    Raises:
        UserError: it is none.
    """
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value < 2**63:
        raise UserError(
            f"{path}, line {line}: {column} is {text!r}; it must be an integer of at least 0"
        )
    return value

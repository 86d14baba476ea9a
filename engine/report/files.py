"""A report as files: the page, its figures as pictures, the tables behind them.

Covers: reading what a report is made of, the names of files, writing them. Altair, vl-convert and
pyarrow are imported where they are used: a run needs none of them.
"""

import dataclasses
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core import UserError
from engine.durable import write_whole
from engine.problem import read_aims
from engine.report.analysis import RunRecord
from engine.report.tables import TABLES, grouped_runs

if TYPE_CHECKING:
    from engine.report.figures import Aims

_MOST_OF_NAME = 80  # characters
_SCALE = 2  # pixels of a picture for each of the figure's


def write_page(runs: Sequence[RunRecord], path: Path) -> None:
    """Write the page that shows runs of one problem.

    Raises:
        UserError: it can't be written, a library is missing, or a timeline can't be read.
    """
    try:
        from engine.report.page import report_page
    except ModuleNotFoundError as error:
        raise _missing("html", error) from error
    write_whole(path, report_page(_named(runs), aims=aims_of(runs)))


def write_images(runs: Sequence[RunRecord], folder: Path) -> int:
    """Write each figure as PNG and SVG; return how many there are.

    Raises:
        UserError: as for `write_page`.
    """
    try:
        import vl_convert

        from engine.report.figures import figures_across, figures_of
    except ModuleNotFoundError as error:
        raise _missing("images", error) from error
    runs, aims = _named(runs), aims_of(runs)
    series = {run.name: group.label or "all" for group in grouped_runs(runs) for run in group.runs}
    figures = {each.name: each for each in figures_across(runs, aims=aims, series=series)}
    names = _file_names([run.name for run in runs])
    for run in runs:
        prefix = "" if len(runs) == 1 else f"{names[run.name]}-"
        figures |= {f"{prefix}{each.name}": each for each in figures_of(run, aims=aims)}
    _make(folder)
    for name, figure in figures.items():
        spec = figure.whole() | {"background": "white"}
        write_whole(folder / f"{name}.svg", vl_convert.vegalite_to_svg(spec))
        write_whole(folder / f"{name}.png", vl_convert.vegalite_to_png(spec, scale=_SCALE))
    return len(figures)


def write_data(runs: Sequence[RunRecord], folder: Path) -> int:
    """Write each table that has rows as CSV and Parquet; return how many have.

    Raises:
        UserError: as for `write_page`.
    """
    try:
        import pyarrow
        from pyarrow import csv, parquet
    except ModuleNotFoundError as error:
        raise _missing("data", error) from error
    runs = _named(runs)
    tables = {name: table(runs).rows for name, table in TABLES.items()}
    tables = {name: rows for name, rows in tables.items() if rows}
    _make(folder)
    for name, rows in tables.items():
        keys = dict.fromkeys(key for row in rows for key in row)
        columns = {key: _column([row.get(key) for row in rows], pyarrow) for key in keys}
        table = pyarrow.table(columns)
        for suffix, write in (("csv", csv.write_csv), ("parquet", parquet.write_table)):
            content = io.BytesIO()
            write(table, content)
            write_whole(folder / f"{name}.{suffix}", content.getvalue())
    return len(tables)


def _column(values: Sequence[Any], pyarrow: Any) -> Any:
    """Return a column, of text if its values are of several kinds or numbers without end."""
    plain = [_storable(value) for value in values]
    try:
        return pyarrow.array(plain)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
        return pyarrow.array([None if value is None else str(value) for value in plain])


def _storable(value: Any) -> Any:
    """Return a value as a file has it: a share as a number, text that UTF-8 can hold."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    return float(value) if isinstance(value, float) else value


def aims_of(runs: Sequence[RunRecord]) -> "Aims":
    """Return the published scores of the runs' problem, and its target, or else the budget's."""
    from engine.report.figures import Aims

    known, target = read_aims(Path(runs[0].settings.problem))
    wanted = {run.settings.budget.target for run in runs}
    of_budget = wanted.pop() if len(wanted) == 1 else None
    return Aims(known=known, target=target if of_budget is None else of_budget)


def _named(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Return the runs with the names by which people are shown them.

    A run's name is its folder's own, or the whole path where two folders have the same.
    """
    own = [Path(run.name).name or run.name for run in runs]
    counts = Counter(own)
    return [
        dataclasses.replace(run, name=name if counts[name] == 1 else run.name)
        for run, name in zip(runs, own, strict=True)
    ]


def _file_names(names: Sequence[str]) -> Mapping[str, str]:
    """Return a name for a file for each of several names, all different."""
    made: dict[str, str] = {}
    for number, name in enumerate(names):
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        plain = re.sub(r"[^\w.=-]+", "_", plain).strip("._")[:_MOST_OF_NAME] or "run"
        made[name] = f"{number}-{plain}" if plain in made.values() else plain
    return made


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} can't be made: {error.strerror}") from error


def _missing(option: str, error: ModuleNotFoundError) -> UserError:
    return UserError(
        f"{option}= needs {error.name}, which is not installed: run make environment, or "
        "pip install altair vl-convert-python jinja2 pygments pyarrow"
    )

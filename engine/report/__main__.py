"""``python -m engine.report``: what one or several recorded runs of the same problem show.

    python -m engine.report runs/A runs/B html=report.html
    python -m engine.report runs/A images=figures data=tables
    python -m engine.report runs/A runs/B analysis=progress
    python -m engine.report runs/A analysis=replay top=3 json=replay.json

html=FILE           write one page with figures, diffs, programs and tables; it needs no network
images=FOLDER       write the same figures as PNG and SVG
data=FOLDER         write the tables behind them, whole, as CSV and Parquet
analysis=progress   best score so far against candidates, tokens, seconds and money
         replay     the best programs and how they came to be; what the first m children bring
         ranks      what each place among the children of a call brings, for each K
         distance   improvement by the parent's distance from what is shown beside it, and K
         coverage   filled cells of a MAP-Elites archive against candidates
         operators  improvement rate of each operator
         parents    improvement rate of each way to choose parents
         learning   the steps of training, and what calls brought before and after them
json=FILE           write all numbers of the analysis to a file
top=N               programs that the replay shows (5)

Runs may go on meanwhile, or have been killed. Exit codes: 0, or 2 for bad input.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.arguments import Arguments, execute
from engine.core import UserError
from engine.durable import write_whole
from engine.report.analysis import ANALYSES, RunRecord, read_runs
from engine.report.files import write_data, write_images, write_page

_TOP = 5
_FOLDERS = ("images", "data")
_WRITTEN = ("html", *_FOLDERS)


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    keys = (*_WRITTEN, "analysis", "json", "top")
    return execute(_report, arguments, keys=keys, usage=__doc__ or "")


def _report(arguments: Arguments) -> int:
    _check(arguments)
    top = arguments.number("top", _TOP)
    runs = read_runs([Path(each) for each in arguments.rest])
    for key in _WRITTEN:
        if key in arguments.options:
            sys.stdout.write(_write(key, runs, Path(arguments.options[key])))
    analysis = arguments.options.get("analysis")
    if analysis is not None:
        sys.stdout.write(_analyse(analysis, runs, top, arguments.options.get("json")))
    return 0


def _check(arguments: Arguments) -> None:
    """Refuse options that make no report.

    Raises:
        UserError: see the lines.
    """
    options = arguments.options
    analysis, known = options.get("analysis"), ", ".join(ANALYSES)
    if analysis is None and not any(key in options for key in _WRITTEN):
        raise UserError(
            f"give analysis=NAME; valid: {known}; or html=FILE, images=FOLDER, data=FOLDER"
        )
    if analysis is not None and analysis not in ANALYSES:
        raise UserError(f"unknown analysis {analysis!r}; valid: {known}")
    for key in ("json", "html"):
        if key in options and not Path(options[key]).name:
            raise UserError(f"{key} is {options[key]!r}; it must be a file")
    for key in _FOLDERS:
        if key in options and not options[key]:
            raise UserError(f"{key} is ''; it must be a folder")
    if "json" in options and analysis is None:
        raise UserError("json=FILE has the numbers of an analysis; give analysis=NAME too")


def _write(key: str, runs: Sequence[RunRecord], path: Path) -> str:
    """Write one kind of report; return the line that says so."""
    if key == "html":
        write_page(runs, path)
        return f"{path}: {path.stat().st_size / 1e6:.1f} MB\n"
    if key == "images":
        return f"{path}: {write_images(runs, path)} figures, each as PNG and SVG\n"
    return f"{path}: {write_data(runs, path)} tables, each as CSV and Parquet\n"


def _analyse(analysis: str, runs: Sequence[RunRecord], top: int, written: str | None) -> str:
    """Return the tables of an analysis as text, and write their numbers if they are wanted."""
    tables = ANALYSES[analysis](runs, top)
    if written is not None:
        figures = {name: table.rows for name, table in tables.items()}
        found = {"analysis": analysis, "runs": [run.name for run in runs], "figures": figures}
        write_whole(Path(written), json.dumps(found, indent=2, allow_nan=False) + "\n")
    return "\n".join(table.text() for table in tables.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

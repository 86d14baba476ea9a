"""The programs of a recorded run, the best first.

Does not cover what they are read for: ``reading.py`` (a pool), ``export.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from engine import config
from engine.core import Candidate, Problem, UserError
from engine.search.roster import rank
from engine.settings import RunSettings
from engine.store import EventLog, RunHistory
from engine.syntax import read

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedRun:
    """A run as its folder says it was.

    Attributes:
        folder: where it is.
        settings: as resolved when it began.
        fingerprint: the problem's at that time.
        best: its valid programs without copies, the best first.
    """

    folder: Path
    settings: RunSettings
    fingerprint: str
    best: tuple[Candidate, ...]


def read_run(folder: Path, *, problem: Problem) -> RecordedRun:
    """Return a run of ``problem``.

    Raises:
        UserError: the folder is no run of this problem, is damaged, or a process works on it.
    """
    settings = run_settings(folder)
    name = Path(settings.problem).name
    if name != problem.name:
        raise UserError(f"{folder} is a run of problem {name}, not of {problem.name}")
    history = RunHistory(direction=problem.direction)
    with EventLog(folder) as log:
        for recorded in log.events():
            history.fold(recorded)
    if not history.sessions:
        raise UserError(f"{folder} is damaged: its log has no beginning")
    valid = [
        Candidate(id=each.candidate, program=history.program_of(each.candidate), score=each.score)
        for each in history.verdicts.values()
        if each.score is not None
    ]
    valid.sort(key=lambda each: rank(each, problem.direction))
    return RecordedRun(
        folder=folder,
        settings=settings,
        fingerprint=history.sessions[0].fingerprint,
        best=tuple(different(valid, program=lambda each: each.program)),
    )


def run_settings(folder: Path) -> RunSettings:
    """Return the settings of the run in ``folder``.

    Raises:
        UserError: it is not a run.
    """
    path = folder / "config.yaml"
    if not path.is_file():
        raise UserError(f"{folder} is not a run: it has no {path.name}; give a folder under runs/")
    return config.load(path)


def different(items: Iterable[T], *, program: Callable[[T], str]) -> Iterator[T]:
    """Yield the items, but none whose program is the same as an earlier item's."""
    seen: set[str] = set()
    for each in items:
        text = program(each)
        known = read(text)
        key = text if known is None else known.key
        if key not in seen:
            seen.add(key)
            yield each

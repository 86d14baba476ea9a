"""A run that has no folder yet: what can stop it, and the folder that it gets.

What can fail early is checked before anything is started. The folder appears once the first
programs have their verdicts. Does not cover how these are found (``engine.beginning``), or how the
run goes on from its folder: ``run.py``.
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from engine import config
from engine.advisor import key_of
from engine.beginning import archive_features, begun_session, check_first, first_events
from engine.core import Problem, UserError
from engine.parts import Parts, read_problem, settled
from engine.paths import expanded
from engine.pool import PoolReading, read_pool
from engine.problem import KEPT, keep_problem
from engine.settings import RunSettings
from engine.store import check_place, check_server, create_run, warn_of_network
from engine.watching import check_watching


@dataclass(frozen=True, kw_only=True, slots=True)
class NewRun:
    """What a run is to begin with; `checked` makes it.

    Attributes:
        settings: the run's.
        problem: the run's.
        keeps_problem: whether the folder is to keep what is data of a problem made in Python.
        folder: that the run is to get.
        stored_as: the run's name where a server has its events; None for its folder's.
        reading: what was read of its pool's sources.
    """

    settings: RunSettings
    problem: Problem
    keeps_problem: bool
    folder: Path
    stored_as: str | None
    reading: PoolReading

    @classmethod
    def checked(
        cls, settings: RunSettings, *, problem: Problem | None, stored_as: str | None
    ) -> Self:
        """Return a run that nothing stops which is known before it starts; see `Run.start`.

        Raises:
            UserError: something does.
        """
        folder = new_folder(settings)
        check_place(folder)
        if settings.store is None:
            warn_of_network(folder)
        keeps_problem = problem is not None
        if problem is None:
            problem = read_problem(settings)
        else:
            kept = folder.absolute() / KEPT / problem.name
            settings = replace(settings, problem=str(kept))
        archive_features(settings, problem)
        key_of(settings.advisor)
        check_watching(settings)
        check_server(settings.store, names=[stored_as or folder.name])
        pool = settings.pool
        return cls(
            settings=settings,
            problem=problem,
            keeps_problem=keeps_problem,
            folder=folder,
            stored_as=stored_as,
            reading=read_pool(pool.sources, problem=problem, most_of_run=pool.most_of_run),
        )

    def create(self, parts: Parts) -> RunSettings:
        """Judge the first programs, make the folder, and return the settings that it has.

        Args:
            parts: that the run works with.

        Raises:
            UserError: the run can't begin with these programs, or its folder can't be made.
        """
        begun = begun_session(0, self.problem)
        events = [begun, *first_events(self.settings, parts, self.reading)]
        check_first(self.settings, self.problem, events)
        settings = settled(self.settings)  # a run that goes on does so in the format it began with

        def write(path: Path) -> None:
            config.save(settings, path)
            if self.keeps_problem:
                keep_problem(self.problem, path.parent / KEPT / self.problem.name)

        create_run(
            self.folder,
            write_config=write,
            events=events,
            url=settings.store,
            stored_as=self.stored_as,
        )
        return settings


def new_folder(settings: RunSettings) -> Path:
    """Return the folder that a run is to get.

    Raises:
        UserError: it exists, or is in the home of somebody who has none.
    """
    runs = expanded(Path(settings.runs), what="runs")
    folder = runs / (settings.name or _default_name(settings))
    if folder.exists():
        raise UserError(f"{folder} exists; give another name=, or go on with resume={folder}")
    return folder


def _default_name(settings: RunSettings) -> str:
    """Return the name of a run that was given none."""
    problem, now = Path(settings.problem).name, time.strftime("%Y%m%d-%H%M%S")
    return f"{problem}-{settings.model.name}-s{settings.seed}-{now}"

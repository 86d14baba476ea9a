"""``python -m engine.run``: starts or resumes a run; the only module that knows all parts.

    python -m engine.run problem=signal model=smollm2 search.k=8 seed=0
    python -m engine.run resume=runs/NAME
    python -m engine.run --multirun search.k=1,2,4,8 seed=0,1,2

The keys and their defaults stand in ``engine/conf``. Exit codes: 0 when a limit of the budget
is reached, 2 for bad input, 130 after Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import engine
from engine import config
from engine.beginning import check_length, evaluated_seeds, first_verdict
from engine.budget import Account, Limit, ended_by
from engine.core import INITIAL, Problem, UserError
from engine.evaluation import EvaluatorPool, evaluator_cores, model_cores
from engine.inference import Model, prepare
from engine.interrupt import interruptible, terminable
from engine.loop import Loop
from engine.model import model_loader
from engine.pool import read_sources
from engine.problem import load_problem
from engine.prompts import Operator, make_operators
from engine.report import Display, print_result, write_results
from engine.restore import (
    Restored,
    archive_features,
    new_cascade,
    replay,
    restore,
    told_cascade,
)
from engine.settings import RunSettings
from engine.store import Event, EventLog, Recorded, RunHistory, Session, create_run
from engine.sweep import sweep
from engine.timeline import Timeline
from engine.timeline_file import TIMELINE

_log = logging.getLogger("brood")


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("brood").setLevel(logging.INFO)
    logging.getLogger("engine").setLevel(logging.INFO)
    if {"--help", "-h"} & set(arguments):
        print(__doc__)
        return 0
    try:
        with terminable():
            return _dispatch(arguments)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # before the loop, or for the second time
        print("interrupted; a run that has a folder goes on with resume=FOLDER", file=sys.stderr)
        return 130


def _dispatch(arguments: Sequence[str]) -> int:
    if {"--multirun", "-m"} & set(arguments):
        return sweep([each for each in arguments if each not in ("--multirun", "-m")])
    if any(each.startswith("resume=") for each in arguments):
        return _resume(arguments)
    return _start(config.resolve(arguments))


def _start(settings: RunSettings) -> int:
    """Begin a run. Its folder appears once everything that can fail early has not."""
    folder = Path(settings.runs) / (settings.name or _default_name(settings))
    if folder.exists():
        raise UserError(f"{folder} exists; give another name=, or go on with resume={folder}")
    problem, cores = _prepare(settings)
    features = archive_features(settings, problem)
    reading = read_sources(settings.pool, problem=problem)
    with _parts(settings, problem, cores) as (pool, load):
        cascade = new_cascade(settings, problem, pool)
        verdict = first_verdict(cascade=cascade, problem=problem, features=features)
        with load() as model:
            operators = _operators(settings, problem, model)
            check_length(problem=problem, model=model, operators=operators)
            begun = evaluated_seeds(
                settings=settings,
                reading=reading,
                problem=problem,
                pool=pool,
                model=model,
                operators=operators,
                features=features,
            )
            session = Session(number=0, engine=engine.__version__, fingerprint=problem.fingerprint)
            create_run(
                folder,
                write_config=lambda path: config.save(settings, path),
                events=[session, verdict, *begun],
            )
            with EventLog(folder, session=session.number) as log:
                run = _Run(folder=folder, settings=settings, problem=problem)
                return run.evolve(log, pool, model, operators)


def _resume(arguments: Sequence[str]) -> int:
    """Go on with a run to the budget that it began with."""
    if len(arguments) != 1:
        raise UserError("resume=FOLDER takes no other argument: a run goes on as it was configured")
    folder = Path(arguments[0].removeprefix("resume="))
    if not (folder / "config.yaml").is_file():
        raise UserError(f"{folder} is not a run: it has no config.yaml; give a folder under runs/")
    settings = config.load(folder / "config.yaml")
    problem, cores = _prepare(settings)
    with EventLog(folder) as log:
        history = replay(log.events(), problem)
        if not history.sessions or INITIAL not in history.verdicts:
            raise UserError(f"{folder} is damaged: its log has no beginning; start a new run")
        if history.sessions[0].fingerprint != problem.fingerprint:
            raise UserError(
                f"{problem.folder}, its data or kernels/ has changed since {folder} began, so "
                "scores would not compare; bring the files back, or start a new run"
            )
        run = _Run(folder=folder, settings=settings, problem=problem)
        if Account(settings.budget, history).is_closed:
            return run.finish(history, log.events(), stopped=False)
        with _parts(settings, problem, cores) as (pool, load), load() as model:
            return run.evolve(log, pool, model, _operators(settings, problem, model))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Run:
    """A run that is ready to go on."""

    folder: Path
    settings: RunSettings
    problem: Problem

    def evolve(
        self,
        log: EventLog,
        pool: EvaluatorPool,
        model: Model,
        operators: Mapping[str, Operator],
    ) -> int:
        """Run the loop to its end and return the exit code."""
        restored = restore(self.settings, self.problem, list(log.events()), model)
        with interruptible() as stopped:
            self._loop(restored, log, pool, model, operators, stopped)
            return self.finish(restored.state.history, log.events(), stopped=stopped())

    def _loop(
        self,
        restored: Restored,
        log: EventLog,
        pool: EvaluatorPool,
        model: Model,
        operators: Mapping[str, Operator],
        stopped: Callable[[], bool],
    ) -> None:
        title = f"brood · {self.problem.name} · {self.settings.model.name} · {self.folder}"
        history, bell = restored.state.history, threading.Event()
        with (
            Timeline(self.folder / TIMELINE) as timeline,
            Display(settings=self.settings, history=history, title=title) as display,
        ):
            pool.watch(timeline)
            pool.announce_to(bell.set)

            def record(event: Event) -> None:
                restored.state.fold(log.append(event))
                display.update()

            if log.session > 0:
                fingerprint = self.problem.fingerprint
                record(
                    Session(number=log.session, engine=engine.__version__, fingerprint=fingerprint)
                )
            Loop(
                settings=self.settings,
                restored=restored,
                record=record,
                operators=operators,
                model=model,
                evaluator=told_cascade(self.settings, self.problem, history, pool),
                stopped=stopped,
                timeline=timeline,
                bell=bell,
            ).run()

    def finish(self, history: RunHistory, events: Iterable[Recorded], *, stopped: bool) -> int:
        """Write and print the results; return the exit code.

        Args:
            history: of the run.
            events: that it is the history of.
            stopped: whether the user asked for an end.
        """
        budget, direction = self.settings.budget, self.problem.direction
        is_over = Account(budget, history).is_closed
        limit = ended_by(budget, events, direction=direction) if is_over else None
        if not (is_over or stopped):  # the clock ran out after the last event
            limit = Limit.SECONDS
        summary = write_results(
            folder=self.folder,
            settings=self.settings,
            problem=self.problem,
            history=history,
            ended_by=limit,
        )
        best = history.best
        program = None if best is None else history.program_of(best.candidate)
        print_result(folder=self.folder, summary=summary, program=program)
        if stopped and not is_over:
            print(f"Stopped. Go on with: python -m engine.run resume={self.folder}")
            return 130
        return 0


def _prepare(settings: RunSettings) -> tuple[Problem, list[int]]:
    """Return the problem and the evaluators' cores, off which all else of this process is kept.

    Threads started from here on inherit that; only the evaluators' bind themselves elsewhere.
    """
    cores = evaluator_cores(settings.evaluation.workers)
    os.sched_setaffinity(0, model_cores(cores))
    prepare(threads=settings.model.threads, kv_cache_gb=settings.model.kv_cache_gb)
    data = None if settings.data is None else Path(settings.data)
    return load_problem(Path(settings.problem), data=data), cores


@contextmanager
def _parts(
    settings: RunSettings, problem: Problem, cores: Sequence[int]
) -> Iterator[tuple[EvaluatorPool, Callable[[], AbstractContextManager[Model]]]]:
    """Hold the evaluators and what the model needs; yield them, and what loads the model."""
    with (
        model_loader(settings) as load,  # what it starts does so while the rest does
        EvaluatorPool(problem=problem, workers=len(cores), cores=cores) as pool,
    ):

        def checked_load() -> AbstractContextManager[Model]:
            _check_sandbox(settings, pool, cores)  # before the minutes that a model may take
            return closing(load())

        yield pool, checked_load


def _check_sandbox(settings: RunSettings, pool: EvaluatorPool, cores: Sequence[int]) -> None:
    """Say where candidates run and behind which walls; refuse to go on if the user wants more."""
    pool.check_walls(strict=settings.evaluation.strict)
    shared = ", which the model uses too" if set(cores) & os.sched_getaffinity(0) else ""
    _log.info("evaluators on cores %s%s", ", ".join(map(str, sorted(set(cores)))), shared)


def _operators(settings: RunSettings, problem: Problem, model: Model) -> Mapping[str, Operator]:
    """Return the operators of the run's mix."""
    every = make_operators(
        problem=problem,
        tokenizer=model,
        max_tokens=settings.model.max_tokens,
        prompts=settings.prompts,
    )
    return {name: every[name] for name, weight in settings.search.operators.items() if weight > 0}


def _default_name(settings: RunSettings) -> str:
    problem, now = Path(settings.problem).name, time.strftime("%Y%m%d-%H%M%S")
    return f"{problem}-{settings.model.name}-s{settings.seed}-{now}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

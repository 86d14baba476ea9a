"""One session of a run on a cluster, at a terminal: from its settings to its results."""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from engine import config
from engine.api.new_run import new_folder
from engine.beginning import check_unchanged
from engine.cluster.driver import Driver
from engine.cluster.islands import check_cluster
from engine.cluster.learning.shared_update import shared_updates_of
from engine.cluster.on_ray import open_ray
from engine.cluster.places import island_folder
from engine.core import Direction, Problem, Session, UserError
from engine.durable import write_whole
from engine.interrupt import interruptible
from engine.parts import read_problem
from engine.report.summary import learned, place_of, write_program
from engine.settings import RunSettings
from engine.store import RunHistory, check_server, is_run, locked, read_event, read_log, replay
from engine.store.fills import FillTally
from engine.terminal import INTERRUPTED, going_on_without

_SECONDS_BETWEEN_LINES = 10.0


def start(settings: RunSettings) -> int:
    """Begin a run on a cluster, and return the exit code of its first session.

    Raises:
        UserError: it can't begin; then nothing of it is left.
    """
    folder = new_folder(settings)
    check_cluster(settings)
    islands = [island_folder(folder, number) for number in range(settings.islands.count)]
    check_server(settings.store, names=[folder.name, *(each.name for each in islands)])
    problem = read_problem(settings)
    with open_ray(settings.cluster), _new_folder(folder, settings) as keep, locked(folder):
        return _session(settings, problem, folder, founds=True, keep=keep)


def resume(folder: Path) -> int:
    """Go on with a run on a cluster; return the exit code.

    Raises:
        UserError: it can't go on.
    """
    settings = config.load_run(folder)
    # By now another process may have that number.
    settings = replace(settings, cache=replace(settings.cache, server_pid=None))
    with locked(folder):
        _check_founded(settings, folder)
        problem = read_problem(settings)
        check_unchanged(problem, _first_session(island_folder(folder, 0)), folder=folder)
        with open_ray(settings.cluster):
            return _session(settings, problem, folder, founds=False, keep=lambda: None)


def _check_founded(settings: RunSettings, folder: Path) -> None:
    """Check that the islands of a run are there, all of them.

    Raises:
        UserError: one is missing.
    """
    islands = [island_folder(folder, number) for number in range(settings.islands.count)]
    missing = [each for each in islands if not is_run(each)]
    if missing == islands:
        raise UserError(f"{folder} was never begun; remove it and start the run again")
    if missing:
        raise UserError(
            f"{missing[0]} is not there; bring it back, or remove {folder} and start the run again "
            "if it was killed before it had begun"
        )


def _first_session(island: Path) -> Session:
    found = read_event(island, Session, "0")
    if not isinstance(found, Session):
        raise UserError(f"{island} is damaged: its log has no beginning; restore it from a copy")
    return found


@contextmanager
def _new_folder(folder: Path, settings: RunSettings) -> Iterator[Callable[[], None]]:
    """Make a run's folder, which goes again unless the yielded function is called."""
    kept = False

    def keep() -> None:
        nonlocal kept
        kept = True

    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise UserError(f"{folder} can't be made: {error}; set runs=FOLDER") from error
    try:
        config.save(settings, folder / "config.yaml")
        yield keep
    finally:
        if not kept:
            shutil.rmtree(folder)


def _session(
    settings: RunSettings,
    problem: Problem,
    folder: Path,
    *,
    founds: bool,
    keep: Callable[[], None],
) -> int:
    title = (problem.name, settings.model.name, f"{settings.islands.count} islands", str(folder))
    _say(" · ".join(["brood", *title]))
    driving = Driver(settings, folder=folder, problem=problem)
    with interruptible() as stopped, closing(driving) as driver:
        if founds:
            driver.found(stopped=stopped)
        keep()
        driver.run(stopped=stopped, show=_shown(driver, problem.direction))
        is_over = driver.are_over or driver.has_reached_target
    report(settings, problem, folder)
    if not is_over:
        _say(f"Stopped. Go on with: python -m engine.run resume={folder}")
        return INTERRUPTED
    return 0


def _say(text: str) -> None:
    """Print a text, if anybody still reads what is printed."""
    with going_on_without():
        print(text)


def _shown(driver: Driver, direction: Direction) -> Callable[[], None]:
    """Return what prints how the islands stand, now and then."""
    began, shown = time.monotonic(), float("-inf")

    def show() -> None:
        nonlocal shown
        if time.monotonic() - shown < _SECONDS_BETWEEN_LINES:
            return
        shown = time.monotonic()
        every = driver.islands.values()
        scores = [each.best_score for each in every if each.best_score is not None]
        best = min(scores, key=direction.key, default=None)
        over = sum(each.is_over for each in every)
        figures = (
            f"best {'-' if best is None else format(best, '.6g')}",
            f"candidates {sum(each.candidates for each in every)}",
            f"islands {len(every)} ({over} over)",
            f"workers {driver.workers}",
            *([] if driver.version is None else [f"adapter {driver.version}"]),
            f"elapsed {time.monotonic() - began:.0f} s",
        )
        _say(" · ".join(figures))

    return show


def report(settings: RunSettings, problem: Problem, folder: Path) -> None:
    """Write and print what the islands have found."""
    histories = {
        number: replay(read_log(island), problem.direction, name=island)
        for number in range(settings.islands.count)
        for island in [island_folder(folder, number)]
    }
    steps = shared_updates_of({number: each.updates for number, each in histories.items()})
    training = learned(settings, [each.update for each in steps])
    summary = {**summarised(histories, problem), "learning": training}
    text = json.dumps(summary, indent=2, allow_nan=False)
    write_whole(folder / "summary.json", f"{text}\n")
    best = histories[summary["best_island"]]
    program = best.program_of(summary["best_candidate"])
    write_program(folder, program)
    if training is not None:
        _say(
            f"Learning ({training['method']}, {training['adapter']}): {training['updates']} steps "
            f"of training stand; the last calls began with version {training['version']}"
        )
    _say(
        f"Best score {summary['best_score']!r}: candidate {summary['best_candidate']} of island "
        f"{summary['best_island']}\n{summary['candidates']} candidates evaluated, "
        f"{summary['valid']} valid, of {summary['children']} children\n"
        f"Everything is in {folder}: {place_of(program)}, summary.json, config.yaml, islands/"
    )


def summarised(histories: Mapping[int, RunHistory], problem: Problem) -> dict[str, Any]:
    """Return the figures of a run's islands, and of all of them together."""
    islands = [
        {
            "number": number,
            "best_candidate": None if each.best is None else each.best.candidate,
            "best_score": each.best_score,
            "candidates": each.evaluated,
            "valid": each.valid,
            "children": len(each.children),
            "migrants": len(each.migrants),
            "sessions": len(each.sessions),
            "version": each.adapter,
            "generated_tokens": each.generated_tokens,
            "prompt_tokens": each.prompt_tokens,
            "cached_prompt_tokens": each.cached_prompt_tokens,
        }
        for number, each in histories.items()
    ]
    scores = {n: each.best_score for n, each in histories.items() if each.best_score is not None}
    best = min(
        scores,
        key=lambda number: (
            problem.direction.key(scores[number]),
            islands[number]["best_candidate"] in histories[number].migrants,  # where it was made
        ),
    )
    filled: dict[str, FillTally] = {}
    for each in histories.values():
        for maker, tally in each.filled.items():
            filled.setdefault(maker, FillTally()).add(tally, direction=problem.direction)
    totals = ("candidates", "valid", "children", "generated_tokens", "prompt_tokens")
    return {
        "problem": problem.name,
        "direction": problem.direction.value,
        "best_island": best,
        "best_candidate": islands[best]["best_candidate"],
        "best_score": islands[best]["best_score"],
        "best_made_by": histories[best].made_by(str(islands[best]["best_candidate"])),
        **{name: sum(int(each[name] or 0) for each in islands) for name in totals},
        "fills": {maker: asdict(tally) for maker, tally in filled.items()},
        "islands": islands,
    }

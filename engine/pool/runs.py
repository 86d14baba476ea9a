"""The best programs of recorded runs: reading them, and writing them as a pool.

A pool's folder holds the programs, ``001.py`` being the best, and ``index.json``: the problem, and
of each program its score in full, the run and the candidate that it was there, and that run's model
and seed. The index is for people and tools; whoever reads the pool evaluates the programs anew.

Does not cover reading a pool: ``reading.py``.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from engine import config
from engine.core import Candidate, Problem, UserError
from engine.problem import load_problem
from engine.search.roster import rank
from engine.settings import RunSettings
from engine.store import is_held, read_log, replay
from engine.store.folder import whole_folder
from engine.syntax import read

T = TypeVar("T")

INDEX = "index.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedRun:
    """A run as its folder says it was.

    Attributes:
        folder: where it is.
        settings: as resolved when it began.
        fingerprint: the problem's at that time.
        best: its valid programs without copies, the best first, as many as were asked for.
    """

    folder: Path
    settings: RunSettings
    fingerprint: str
    best: list[Candidate]


def read_run(folder: Path, *, problem: Problem, most: int | None = None) -> RecordedRun:
    """Return a run of ``problem``.

    Args:
        folder: the run's.
        problem: that it has to be of.
        most: how many of its best programs; None for all. To tell copies apart is to parse them.

    Raises:
        UserError: the folder is no run of this problem, is damaged, or a process works on it.
    """
    settings = config.load_recorded(folder)
    name = Path(settings.problem).name
    if name != problem.name:
        raise UserError(f"{folder} is a run of problem {name}, not of {problem.name}")
    if is_held(folder):
        raise UserError(f"another process works on {folder}; wait for it or stop it")
    events = tuple(read_log(folder))  # all, so that the log is closed before one is found wrong
    history = replay(events, problem.direction, name=folder)
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
        best=[*islice(_different(valid, program=lambda each: each.program), most)],
    )


def _different(items: Iterable[T], *, program: Callable[[T], str]) -> Iterator[T]:
    """Yield the items without those whose program is the same as an earlier item's."""
    found: set[str] = set()
    for each in items:
        text = program(each)
        known = read(text)
        key = text if known is None else known.key
        if key not in found:
            found.add(key)
            yield each


def _of_other_scores(
    pairs: Iterable[tuple[RecordedRun, Candidate]],
) -> Iterator[tuple[RecordedRun, Candidate]]:
    """Yield the first program of each score."""
    found: set[float] = set()
    for pair in pairs:
        if pair[1].score not in found:
            found.add(pair[1].score)
            yield pair


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """A program in a pool's index.

    Attributes:
        file: in the pool's folder.
        score: unrounded, as the run recorded it.
        run: name of the run.
        candidate: the program's id in the run.
        model: name of the run's model.
        seed: the run's.
    """

    file: str
    score: float
    run: str
    candidate: str
    model: str
    seed: int


def export(
    runs: Sequence[Path], *, to: Path, top: int, each: int | None = None, distinct: bool = False
) -> list[Exported]:
    """Write the best programs of all runs together; return them, the best first.

    The folder appears whole or not at all.

    Args:
        runs: folders of runs of one problem, at least one.
        to: the pool's folder, which must not exist; its parents are made.
        top: how many programs, at most.
        each: how many of one run, at most; None for no limit. One good run's best programs are
            often near-copies, and would be the whole pool.

    Raises:
        UserError: a folder is no run, the runs are of several problems or scored differently, none
            has a valid program, or the pool can't be written.
    """
    if to.exists():
        raise UserError(f"{to} exists; give another to=FOLDER")
    settings = config.load_recorded(runs[0])
    data = Path(settings.data) if settings.data is not None else None
    problem = load_problem(Path(settings.problem), data=data, metric=settings.metric)
    share = top if each is None else min(each, top)  # no run can give more
    most = None if distinct else share  # how many have one score is not known before
    first, *others = recorded = [read_run(run, problem=problem, most=most) for run in runs]
    for run in others:
        if run.fingerprint != first.fingerprint:
            raise UserError(
                f"{run.folder} and {first.folder} were scored by different versions of the "
                "problem, so their scores do not compare; export each to a pool of its own"
            )
    chosen = _of_other_scores if distinct else iter
    pairs = [[(run, candidate) for candidate in run.best] for run in recorded]
    ordered = sorted(
        (pair for each_run in pairs for pair in islice(chosen(each_run), each)),
        key=lambda pair: rank(pair[1], problem.direction),
    )
    different = _different(ordered, program=lambda pair: pair[1].program)
    best = [*islice(chosen(different), top)]
    if not best:
        raise UserError(f"no run in {', '.join(map(str, runs))} has a valid program")
    entries = [
        Exported(
            file=f"{number:03}.py",
            score=candidate.score,
            run=run.folder.resolve().name,
            candidate=candidate.id,
            model=run.settings.model.name,
            seed=run.settings.seed,
        )
        for number, (run, candidate) in enumerate(best, start=1)
    ]
    index = {
        "problem": problem.name,
        "direction": problem.direction.value,
        "fingerprint": first.fingerprint,
        "programs": [asdict(entry) for entry in entries],
    }
    with whole_folder(to, advice="give another to=FOLDER") as partial:
        for entry, (_, candidate) in zip(entries, best, strict=True):
            (partial / entry.file).write_text(candidate.program, encoding="utf-8", newline="")
        (partial / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    return entries

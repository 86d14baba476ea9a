"""Writing the best programs of runs as a pool.

A pool's folder holds the programs, ``001.py`` being the best, and ``index.json``: the problem, and
of each program its score in full, the run and the candidate that it was there, and that run's model
and seed. The index is for people and tools; whoever reads the pool evaluates the programs anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.core import Problem, UserError
from engine.pool.runs import RecordedRun, different, read_run, run_settings
from engine.problem import load_problem
from engine.search.roster import rank
from engine.store.folder import whole_folder

INDEX = "index.json"


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
    runs: Sequence[Path], *, to: Path, top: int, each: int | None = None
) -> tuple[Exported, ...]:
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
    settings = run_settings(runs[0])
    data = Path(settings.data) if settings.data is not None else None
    problem = load_problem(Path(settings.problem), data=data)
    recorded = [read_run(run, problem=problem) for run in runs]
    for run in recorded[1:]:
        if run.fingerprint != recorded[0].fingerprint:
            raise UserError(
                f"{run.folder} and {recorded[0].folder} were scored by different versions of the "
                "problem, so their scores do not compare; export each to a pool of its own"
            )
    best = _best(recorded, problem, top=top, each=each)
    if not best:
        raise UserError(f"no run in {', '.join(map(str, runs))} has a valid program")
    _write(to, problem, recorded[0].fingerprint, best)
    return tuple(entry for entry, _ in best)


def _best(
    runs: Sequence[RecordedRun], problem: Problem, *, top: int, each: int | None
) -> list[tuple[Exported, str]]:
    """Return the best programs, each with its entry in the index."""
    ordered = sorted(
        ((run, candidate) for run in runs for candidate in run.best[:each]),
        key=lambda pair: rank(pair[1], problem.direction),
    )
    best = list(different(ordered, program=lambda pair: pair[1].program))[:top]
    return [
        (
            Exported(
                file=f"{number:03}.py",
                score=candidate.score,
                run=run.folder.resolve().name,
                candidate=candidate.id,
                model=run.settings.model.name,
                seed=run.settings.seed,
            ),
            candidate.program,
        )
        for number, (run, candidate) in enumerate(best, start=1)
    ]


def _write(
    to: Path, problem: Problem, fingerprint: str, best: Sequence[tuple[Exported, str]]
) -> None:
    index = {
        "problem": problem.name,
        "direction": problem.direction.value,
        "fingerprint": fingerprint,
        "programs": [asdict(entry) for entry, _ in best],
    }
    with whole_folder(to, advice="give another to=FOLDER") as partial:
        for entry, program in best:
            (partial / entry.file).write_text(program, encoding="utf-8", newline="")
        (partial / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")

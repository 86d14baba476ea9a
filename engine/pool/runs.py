"""The best programs of recorded runs: reading them, and writing them as a pool.

A pool's folder holds the programs, ``001.py`` being the best, and ``index.json``: the problem, and
of each program its score in full, the run and the candidate that it was there, and that run's model
and seed. The index is for people and tools; whoever reads the pool evaluates the programs anew.

Does not cover reading a pool: ``reading.py``.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from engine import config
from engine.core import Candidate, Direction, UserError
from engine.search.roster import rank
from engine.settings import RunSettings
from engine.store import is_held, read_log, replay
from engine.store.folder import whole_folder
from engine.syntax import read

INDEX = "index.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedRun:
    """A run as its folder says it was.

    Attributes:
        folder: where it is.
        settings: as resolved when it began.
        fingerprint: the problem's at that time.
        valid: its valid programs that could be parents, the best first, copies among them. An
            improved solution is none: its score does not say what its code is worth.
    """

    folder: Path
    settings: RunSettings
    fingerprint: str
    valid: list[Candidate]

    def best(self, most: int) -> Iterator[Candidate]:
        """Return the best programs without copies, ``most`` of them; to tell copies is to parse."""
        pairs = ((self, candidate) for candidate in self.valid)
        return (candidate for _, candidate in _chosen(pairs, each=most, distinct=False))


def read_run(folder: Path, *, problem: str, direction: Direction) -> RecordedRun:
    """Return a run of a problem.

    Args:
        folder: the run's.
        problem: name of the one that it has to be of.
        direction: of that.

    Raises:
        UserError: the folder is no run of this problem, is damaged, or a process works on it.
    """
    settings = config.load_recorded(folder)
    name = Path(settings.problem).name
    if name != problem:
        raise UserError(f"{folder} is a run of problem {name}, not of {problem}")
    if is_held(folder):
        raise UserError(f"another process works on {folder}; wait for it or stop it")
    events = tuple(read_log(folder))  # all, so that the log is closed before one is found wrong
    history = replay(events, direction, name=folder)
    no_parents = {each.id for each in history.fills.values() if not each.joins}
    valid = [
        Candidate(id=each.candidate, program=history.program_of(each.candidate), score=each.score)
        for each in history.verdicts.values()
        if each.score is not None and each.candidate not in no_parents
    ]
    valid.sort(key=lambda each: rank(each, direction))
    return RecordedRun(
        folder=folder,
        settings=settings,
        fingerprint=history.sessions[0].fingerprint,
        valid=valid,
    )


def _chosen(
    pairs: Iterable[tuple[RecordedRun, Candidate]], *, each: int | None, distinct: bool
) -> Iterator[tuple[RecordedRun, Candidate]]:
    """Yield the first of each program, ``each`` of a run at most, or the first of each score."""
    programs: set[str] = set()
    scores: set[float] = set()
    given: Counter[Path] = Counter()
    for run, candidate in pairs:
        is_full = each is not None and given[run.folder] == each
        if is_full or (distinct and candidate.score in scores):
            continue
        known = read(candidate.program)
        key = candidate.program if known is None else known.key
        if key not in programs:
            programs.add(key)
            scores.add(candidate.score)
            given[run.folder] += 1
            yield run, candidate


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
    problem = Path(settings.problem)
    direction, _ = config.recorded_scores(settings, folder=runs[0])
    first, *others = recorded = [
        read_run(run, problem=problem.name, direction=direction) for run in runs
    ]
    for run in others:
        if run.fingerprint != first.fingerprint:
            raise UserError(
                f"{run.folder} and {first.folder} were scored by different versions of the "
                "problem, so their scores do not compare; export each to a pool of its own"
            )
    ordered = sorted(
        ((run, candidate) for run in recorded for candidate in run.valid),
        key=lambda pair: rank(pair[1], direction),
    )
    best = [*islice(_chosen(ordered, each=each, distinct=distinct), top)]
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
        "direction": direction.value,
        "fingerprint": first.fingerprint,
        "programs": [asdict(entry) for entry in entries],
    }
    with whole_folder(to, advice="give another to=FOLDER") as partial:
        for entry, (_, candidate) in zip(entries, best, strict=True):
            (partial / entry.file).write_text(candidate.program, encoding="utf-8", newline="")
        (partial / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    return entries

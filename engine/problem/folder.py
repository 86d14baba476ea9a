"""Loading a problem: its folder becomes a `Problem`, with the trusted code in ``evaluator.py``."""

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from engine.core import (
    FULL,
    JUDGED,
    Case,
    Direction,
    Feature,
    KnownScore,
    Limits,
    Problem,
    Stage,
    UserError,
)
from engine.paths import expanded
from engine.problem.command import checked_command
from engine.problem.declaration import one_line, read, read_declaration
from engine.problem.fingerprint import fingerprint
from engine.problem.improvement import check_improvement
from engine.problem.initial import INITIAL_FILE, INITIAL_FOLDER, check_entry_point, read_initial
from engine.problem.peers import find, read_peer
from engine.problem.places import place_of_error, place_of_function

FILES = ("problem.yaml", "statement.md", INITIAL_FILE, "evaluator.py")
POOL = "pool"
"""The folder of a problem's own pool."""
RESERVED = "cascade"
"""No stage may have this name: ``engine.evaluation.cascade`` has metrics of its own under it."""


def shipped() -> dict[str, Path]:
    """Return the folders of the problems that come with the project, by name."""
    import evaluators

    root = Path(next(iter(evaluators.__path__)))
    return {path.parent.name: path.parent for path in sorted(root.glob("*/problem.yaml"))}


def load_problem(folder: Path, *, data: Path | None = None, metric: str | None = None) -> Problem:
    """Load the problem in ``folder``, with the user's own ``data`` if it can read any.

    Args:
        folder: a problem's, or one of another system's (``engine.problem.peers``).
        data: the user's own; None for the data that come with the problem.
        metric: the one that is the score, for another system's; None for ``combined_score``.

    Raises:
        UserError: the folder is not a complete problem, or the data are not what it reads; the
            message names what is missing or wrong, and where.
    """
    folder = expanded(folder, what="problem folder", links=True)
    data = None if data is None else expanded(data, what="data").absolute()
    peer = find(folder)
    if peer is not None:
        if data is not None:
            raise UserError(f"problem {folder.name} reads no data; leave data={data} out")
        return read_peer(peer, metric=metric)
    if metric is not None:
        raise UserError(f"problem {folder.name} names its score itself; leave metric={metric} out")
    declared = _checked_declaration(folder)
    if data is not None and not data.exists():
        raise UserError(f"data {data} does not exist; give data=PATH of a file or a folder")
    judge = declared["judge"]
    stages: tuple[Stage, ...] = JUDGED
    if judge is None:
        evaluator = _open_evaluator(folder, data)
        stages = _read_stages(evaluator, folder / "evaluator.py")
        declared["limits"] = _limits_of(evaluator, folder, otherwise=declared["limits"])
    elif data is not None:
        raise UserError(f"problem {folder.name} reads no data; leave data={data} out")
    initial_program = read_initial(folder)
    if judge is None:
        check_entry_point(folder, initial_program, declared["entry_point"])
        check_improvement(folder, declared["improvement"], stages[-1].cases, initial_program)
    else:
        declared["judge"] = checked_command(folder, judge, initial_program)
    statement = read(folder / "statement.md").strip()
    if not statement:
        raise UserError(
            f"{folder / 'statement.md'}:1: it is empty; say in it what a program has to do"
        )
    return Problem(
        name=folder.name,
        folder=folder,
        statement=statement,
        initial_program=initial_program,
        stages=stages,
        fingerprint=fingerprint(folder, data),
        **declared,
    )


def _checked_declaration(folder: Path) -> dict[str, Any]:
    """Return what the problem in ``folder`` declares.

    Raises:
        UserError: it is no folder, its declaration is not complete, or it lacks a file.
    """
    listed = ", ".join(FILES)
    if not folder.is_dir():
        raise UserError(f"problem folder {folder} does not exist; give a folder with {listed}")
    missing = [name for name in FILES if not (folder / name).is_file()]
    if (folder / INITIAL_FOLDER).is_dir() and INITIAL_FILE in missing:
        missing.remove(INITIAL_FILE)
    if missing == ["evaluator.py"]:
        declared = read_declaration(folder / "problem.yaml")
        if declared["judge"] is not None:
            return declared
    if missing:
        raise UserError(f"problem folder {folder} has no {', '.join(missing)}; it needs {listed}")
    return read_declaration(folder / "problem.yaml")


def read_direction(folder: Path) -> Direction:
    """Return whether the problem in ``folder`` is maximised, without loading the rest of it.

    Raises:
        UserError: there is no such problem, or its declaration is not complete.
    """
    if find(folder) is not None:
        return Direction.MAXIMISE
    direction: Direction = read_declaration(folder / "problem.yaml")["direction"]
    return direction


def read_features(folder: Path) -> tuple[Feature, ...]:
    """Return the features that the problem in ``folder`` names, as `read_direction`."""
    if find(folder) is not None:
        return ()
    features: tuple[Feature, ...] = read_declaration(folder / "problem.yaml")["features"]
    return features


def read_aims(folder: Path) -> tuple[tuple[KnownScore, ...], float | None]:
    """Return the published scores and the target that the problem in ``folder`` declares.

    A folder without ``problem.yaml`` declares none.

    Raises:
        UserError: its declaration is not complete.
    """
    path = folder / "problem.yaml"
    if not path.is_file():
        return (), None
    declared = read_declaration(path)
    return declared["known_scores"], declared["target"]


def _open_evaluator(folder: Path, data: Path | None) -> Any:
    """Return what has the functions of a problem: the module, or what its ``with_data`` returns.

    Raises:
        UserError: it can't be imported, lacks a function, or the data are not what it reads.
    """
    module = _import_evaluator(folder)
    path = folder / "evaluator.py"
    opener = getattr(module, "with_data", None)
    if opener is None and data is not None:
        raise UserError(f"problem {folder.name} reads no data; leave data={data} out")
    with _said_in_a_line(path, "with_data", "with_data() failed"):
        evaluator = module if opener is None else opener(data)
    for function in ("cases", "score"):
        if not callable(getattr(evaluator, function, None)):
            raise UserError(f"{path} has no function {function}(); see engine/problem/__init__.py")
    return evaluator


def _limits_of(evaluator: Any, folder: Path, *, otherwise: Limits) -> Limits:
    """Return the limits that the data ask for, or those that ``problem.yaml`` declares.

    Raises:
        UserError: they are no limits.
    """
    limits = getattr(evaluator, "limits", None)
    if limits is not None and not isinstance(limits, Limits):
        raise UserError(
            f"{folder / 'evaluator.py'}: limits is {type(limits).__name__}; make it an "
            "engine.core.Limits, or None for those of problem.yaml"
        )
    return otherwise if limits is None else limits


def _import_evaluator(folder: Path) -> ModuleType:
    """Import ``folder`` as a package of a name of its own, and return its module ``evaluator``."""
    package = f"brood_problem_{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
    _forget(package)
    spec = ModuleSpec(package, loader=None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    sys.modules[package] = importlib.util.module_from_spec(spec)
    importlib.invalidate_caches()  # the folder may have changed since it was last looked at
    try:
        return importlib.import_module(f"{package}.evaluator")
    except Exception as error:
        _forget(package)
        lost = error.name if isinstance(error, ModuleNotFoundError) else None
        is_neighbour = bool(lost) and (folder / f"{lost}.py").is_file()
        neighbour = f"import it as a neighbour, from .{lost} import ..."
        advice = neighbour if is_neighbour else "mend it"
        where = place_of_error(error, folder, otherwise=str(folder / "evaluator.py"))
        raise UserError(
            f"{where}: evaluator.py can't be imported: {type(error).__name__}: "
            f"{one_line(error)}; {advice}"
        ) from error


def _forget(package: str) -> None:
    """Let no module of an earlier import of this folder be taken for today's."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def _read_stages(evaluator: Any, path: Path) -> tuple[Stage, ...]:
    """Return the stages of what `_open_evaluator` returned; ``path`` is for the messages.

    Raises:
        UserError: they can't be had, or are no stages with cases.
    """
    with _said_in_a_line(path, "cases", "its cases can't be had"):
        screens = tuple(evaluator.screens()) if hasattr(evaluator, "screens") else ()
        cases = tuple(evaluator.cases())
    if not all(isinstance(screen, Stage) for screen in screens):
        where = place_of_function(path, "screens")
        raise UserError(f"{where}: screens() must return engine.core.Stage values")
    stages = (*screens, Stage(name=FULL, cases=cases, score=evaluator.score))
    for stage in screens:
        name: object = stage.name
        if not isinstance(name, str) or not name.isidentifier() or name == RESERVED:
            must_be = f"it must be an identifier other than {RESERVED}"
            raise UserError(f"{path}: a stage has the name {name!r}; {must_be}")
        if not callable(stage.score):
            raise UserError(f"{path}: stage {name} has no function for its score")
    if len({stage.name for stage in stages}) < len(stages):
        raise UserError(f"{path}: two stages have one name; the last one's is {FULL!r}")
    for stage in stages:
        if not stage.cases or not all(isinstance(case, Case) for case in stage.cases):
            where = place_of_function(path, "cases")
            raise UserError(f"{where}: cases() must return engine.core.Case values, at least one")
    return stages


@contextmanager
def _said_in_a_line(path: Path, function: str, what: str) -> Iterator[None]:
    """Make any error of a function in ``path`` one that the user can read."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        where = place_of_error(error, path.parent, otherwise=place_of_function(path, function))
        said = f"{type(error).__name__}: {one_line(error)}"
        raise UserError(f"{where}: {what}: {said}; mend it") from error

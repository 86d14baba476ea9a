"""Loading a problem from its folder.

A problem is a folder; copying one and changing its files makes a new problem, with no change
anywhere else. It holds four files:

``problem.yaml``
    ``direction`` (maximise or minimise), ``entry_point``, ``limits`` (``seconds``,
    ``memory_mb``) and, optionally, ``isolate_cases``, ``modules`` (a list of names),
    ``known_scores`` (``score``, ``source`` and, optionally, ``comparable``) and ``features``, the
    dimensions of an archive: ``NAME: [low, high, bins]``, NAME a metric or one of
    ``engine.search.features.MEASURES``.
``statement.md``
    The task in words, as the model is to read it.
``initial.py``
    The first candidate.
``evaluator.py``
    Trusted code with two functions: ``cases() -> Sequence[Case]`` and
    ``score(outputs) -> Mapping[str, float]``, which has the metric ``score``; optionally
    ``screens() -> Sequence[Stage]``, the cheap stages in front of these. A problem that can read
    data of the user's has one function instead, ``with_data(path: Path | None)``, which returns
    an object with those two or three; None stands for the data that come with the problem.

A folder ``pool`` beside them may hold programs to begin with (``engine.pool``). They decide no
score, so the fingerprint is not theirs too.

Does not cover: running candidates (``engine.evaluation``) and configuration (``engine.config``).
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from engine.core import Case, Direction, Feature, KnownScore, Limits, Problem, Stage, UserError

FILES = ("problem.yaml", "statement.md", "initial.py", "evaluator.py")
POOL = "pool"
"""The folder of a problem's own pool."""

FULL = "full"
"""Name of every problem's last stage."""

RESERVED = "cascade"
"""No stage may have this name: ``engine.evaluation.cascade`` has metrics of its own under it."""

_KEYS = {
    *("direction", "entry_point", "limits"),
    *("isolate_cases", "modules", "known_scores", "features"),
}


def shipped() -> dict[str, Path]:
    """Return the folders of the problems that come with the project, by name."""
    import evaluators

    root = Path(next(iter(evaluators.__path__)))
    return {path.parent.name: path.parent for path in sorted(root.glob("*/problem.yaml"))}


def load_problem(folder: Path, *, data: Path | None = None) -> Problem:
    """Load the problem in ``folder``, with the user's own ``data`` if it can read any.

    Raises:
        UserError: the folder is not a complete problem, or the data are not what it reads; the
            message names what is missing or wrong, and where.
    """
    folder = folder.expanduser().resolve()
    if not folder.is_dir():
        raise UserError(f"problem folder {folder} does not exist; give a folder with {_listed()}")
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise UserError(
            f"problem folder {folder} has no {', '.join(missing)}; it needs {_listed()}"
        )
    data = None if data is None else _find_data(data)
    declared = _read_declaration(folder / "problem.yaml")
    evaluator = _open_evaluator(folder, data)
    initial_program = _read(folder / "initial.py")
    try:
        compile(initial_program, str(folder / "initial.py"), "exec")
    except (SyntaxError, ValueError) as error:  # ValueError: a null character, before 3.12
        raise UserError(f"{folder / 'initial.py'} does not parse: {error}; mend it") from error
    return Problem(
        name=folder.name,
        folder=folder,
        statement=_read(folder / "statement.md").strip(),
        initial_program=initial_program,
        stages=_stages(evaluator, folder / "evaluator.py"),
        fingerprint=_fingerprint(folder, data),
        **declared,
    )


def read_direction(folder: Path) -> Direction:
    """Return whether the problem in ``folder`` is maximised, without loading the rest of it.

    Raises:
        UserError: there is no such problem, or its declaration is not complete.
    """
    direction: Direction = _read_declaration(folder / "problem.yaml")["direction"]
    return direction


def read_features(folder: Path) -> tuple[Feature, ...]:
    """Return the features that the problem in ``folder`` names, as `read_direction`."""
    features: tuple[Feature, ...] = _read_declaration(folder / "problem.yaml")["features"]
    return features


def _find_data(data: Path) -> Path:
    data = data.expanduser().absolute()
    if not data.exists():
        raise UserError(f"data {data} does not exist; give data=PATH of a file or a folder")
    return data


def _listed() -> str:
    return ", ".join(FILES)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read as UTF-8 text: {error}") from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _read_declaration(path: Path) -> dict[str, Any]:
    text = _read(path)
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not valid YAML: {_one_line(error)}") from error
    if not isinstance(raw, dict):
        raise UserError(f"{path} is not a mapping; it needs the keys {', '.join(sorted(_KEYS))}")
    unknown = sorted(set(raw) - _KEYS, key=str)  # a YAML key can be a number too
    if unknown:
        raise UserError(
            f"{path}: unknown key {unknown[0]!r}; valid keys: {', '.join(sorted(_KEYS))}"
        )
    try:
        return {
            "direction": _direction(raw["direction"]),
            "entry_point": _entry_point(raw["entry_point"]),
            "limits": _limits(raw["limits"]),
            "isolate_cases": _flag("isolate_cases", raw.get("isolate_cases", False)),
            "modules": _modules(raw.get("modules", [])),
            "known_scores": tuple(
                KnownScore(
                    score=float(known["score"]),
                    source=str(known["source"]),
                    comparable=_flag("comparable", known.get("comparable", True)),
                )
                for known in raw.get("known_scores", ())
            ),
            "features": _features(raw.get("features", {})),
        }
    except KeyError as error:
        raise UserError(f"{path}: key {error} is missing") from error
    except (OverflowError, TypeError, ValueError) as error:  # of an int of hundreds of digits
        raise UserError(f"{path}: {_one_line(error)}") from error


def _direction(value: Any) -> Direction:
    if value not in list(Direction):
        raise ValueError(f"direction is {value!r}; it must be {' or '.join(Direction)}")
    return Direction(value)


def _entry_point(value: Any) -> str:
    if not isinstance(value, str) or not value.isidentifier():
        raise ValueError(f"entry_point is {value!r}; it must be the name of a function")
    return value


def _limits(value: Any) -> Limits:
    if not isinstance(value, dict):
        raise ValueError("limits must be a mapping with the keys seconds, memory_mb")
    seconds, memory_mb = float(value["seconds"]), float(value["memory_mb"])
    if not (0 < seconds < math.inf and 1 <= memory_mb < math.inf):  # NaN fails both
        raise ValueError("limits must be finite, seconds above 0 and memory_mb at least 1")
    return Limits(seconds=seconds, memory_bytes=int(memory_mb) << 20)


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):  # bool("false") would be True
        raise ValueError(f"{key} is {value!r}; it must be true or false")
    return value


def _modules(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(
        isinstance(name, str) and all(map(str.isidentifier, name.split("."))) for name in value
    ):
        raise ValueError(f"modules is {value!r}; it must be a list of names of modules")
    return tuple(value)


def _features(value: Any) -> tuple[Feature, ...]:
    if not isinstance(value, dict):
        raise ValueError(f"features is {value!r}; it must be a mapping, NAME: [low, high, bins]")
    return tuple(_feature(name, given) for name, given in value.items())


def _feature(name: Any, value: Any) -> Feature:
    is_range = isinstance(value, list) and len(value) == 3
    if not isinstance(name, str) or not is_range or type(value[2]) is not int:
        raise ValueError(
            f"feature {name!r} is {value!r}; it must be [low, high, bins], two numbers and a count"
        )
    return Feature(name=name, low=float(value[0]), high=float(value[1]), bins=value[2])


def _open_evaluator(folder: Path, data: Path | None) -> Any:
    """Return what has the functions of a problem: the module, or what its ``with_data`` returns."""
    module = _import_evaluator(folder)
    path = folder / "evaluator.py"
    opener = getattr(module, "with_data", None)
    if opener is None and data is not None:
        raise UserError(f"problem {folder.name} reads no data; leave data={data} out")
    try:
        evaluator = module if opener is None else opener(data)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{path}: with_data() failed: {type(error).__name__}: {_one_line(error)}"
        ) from error
    for function in ("cases", "score"):
        if not callable(getattr(evaluator, function, None)):
            raise UserError(f"{path} has no function {function}(); see engine/problem.py")
    return evaluator


def _import_evaluator(folder: Path) -> ModuleType:
    """Import ``evaluator.py`` under a name that no other problem's evaluator has."""
    path = folder / "evaluator.py"
    name = f"brood_problem_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # both are set for a .py file
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UserError(
            f"{path} can't be imported: {type(error).__name__}: {_one_line(error)}"
        ) from error
    return module


def _stages(evaluator: Any, path: Path) -> tuple[Stage, ...]:
    screens: tuple[Any, ...] = ()
    try:
        if hasattr(evaluator, "screens"):
            screens = tuple(evaluator.screens())
        cases = tuple(evaluator.cases())
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{path}: its cases can't be had: {type(error).__name__}: {_one_line(error)}"
        ) from error
    if not all(isinstance(screen, Stage) for screen in screens):
        raise UserError(f"{path}: screens() must return engine.core.Stage values")
    stages = (*screens, Stage(name=FULL, cases=cases, score=evaluator.score))
    for screen in screens:
        _check_screen(screen, path)
    if len({stage.name for stage in stages}) < len(stages):
        raise UserError(f"{path}: two stages have one name; the last one's is {FULL!r}")
    for stage in stages:
        if not stage.cases or not all(isinstance(case, Case) for case in stage.cases):
            raise UserError(f"{path}: cases() must return engine.core.Case values, at least one")
    return stages


def _check_screen(screen: Stage, path: Path) -> None:
    name: object = screen.name
    if not isinstance(name, str) or not name.isidentifier() or name == RESERVED:
        raise UserError(
            f"{path}: a stage has the name {name!r}; it must be an identifier other than {RESERVED}"
        )
    if not callable(screen.score):
        raise UserError(f"{path}: stage {name} has no function for its score")


def _fingerprint(folder: Path, data: Path | None) -> str:
    """Digest what decides a score: the folder's files, data, and the kernels they call."""
    import kernels

    digest = hashlib.sha256()
    sources = sorted(Path(next(iter(kernels.__path__))).glob("*.py"))
    for path in [*(folder / name for name in FILES), *sources, *_files(data)]:
        try:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").digest()
        except OSError as error:
            raise UserError(f"{path} can't be read: {error}") from error
        digest.update(path.name.encode() + b"\0" + content)
    return digest.hexdigest()


def _files(data: Path | None) -> list[Path]:
    if data is None:
        return []
    return sorted(path for path in data.rglob("*") if path.is_file()) if data.is_dir() else [data]

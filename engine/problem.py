"""Loading a problem from its folder.

A problem is a folder; copying one and changing its files makes a new problem, with no change
anywhere else. It holds four files:

``problem.yaml``
    ``direction`` (maximise or minimise), ``entry_point``, ``limits`` (``seconds``,
    ``memory_mb``) and, optionally, ``isolate_cases`` and ``known_scores`` (``score``, ``source``).
``statement.md``
    The task in words, as the model is to read it.
``initial.py``
    The first candidate.
``evaluator.py``
    Trusted code with two functions: ``cases() -> Sequence[Case]`` and
    ``score(outputs) -> Mapping[str, float]``, which has the metric ``score``.

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

from engine.core import Case, Direction, KnownScore, Limits, Problem, UserError

FILES = ("problem.yaml", "statement.md", "initial.py", "evaluator.py")
_KEYS = {"direction", "entry_point", "limits", "isolate_cases", "known_scores"}


def shipped() -> dict[str, Path]:
    """Return the folders of the problems that come with the project, by name."""
    import evaluators

    root = Path(next(iter(evaluators.__path__)))
    return {path.parent.name: path.parent for path in sorted(root.glob("*/problem.yaml"))}


def load_problem(folder: Path) -> Problem:
    """Load the problem in ``folder``.

    Raises:
        UserError: the folder is not a complete problem; the message names what is missing or
            wrong, and where.
    """
    folder = folder.expanduser().resolve()
    if not folder.is_dir():
        raise UserError(f"problem folder {folder} does not exist; give a folder with {_listed()}")
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise UserError(
            f"problem folder {folder} has no {', '.join(missing)}; it needs {_listed()}"
        )
    declared = _read_declaration(folder / "problem.yaml")
    evaluator = _import_evaluator(folder)
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
        cases=_cases(evaluator, folder),
        score=evaluator.score,
        fingerprint=_fingerprint(folder),
        **declared,
    )


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
            "known_scores": tuple(
                KnownScore(score=float(known["score"]), source=str(known["source"]))
                for known in raw.get("known_scores", ())
            ),
        }
    except KeyError as error:
        raise UserError(f"{path}: key {error} is missing") from error
    except (TypeError, ValueError) as error:
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
    for function in ("cases", "score"):
        if not callable(getattr(module, function, None)):
            raise UserError(f"{path} has no function {function}(); see engine/problem.py")
    return module


def _cases(evaluator: ModuleType, folder: Path) -> tuple[Case, ...]:
    try:
        cases = tuple(evaluator.cases())
    except Exception as error:
        raise UserError(
            f"{folder / 'evaluator.py'}: cases() failed: {type(error).__name__}: {_one_line(error)}"
        ) from error
    if not cases or not all(isinstance(case, Case) for case in cases):
        raise UserError(f"{folder / 'evaluator.py'}: cases() must return engine.core.Case values")
    return cases


def _fingerprint(folder: Path) -> str:
    """Digest what decides a score: the folder's files and the kernels that evaluators call."""
    import kernels

    digest = hashlib.sha256()
    sources = sorted(Path(next(iter(kernels.__path__))).glob("*.py"))
    for path in [*(folder / name for name in FILES), *sources]:
        data = path.read_bytes()
        digest.update(f"{path.name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()

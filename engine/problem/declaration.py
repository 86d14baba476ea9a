"""What ``problem.yaml`` declares, checked."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import yaml

from engine.core import Direction, Feature, KnownScore, Limits, UserError
from engine.problem.text import one_line, read

_KEYS = {
    *("direction", "entry_point", "limits"),
    *("isolate_cases", "modules", "known_scores", "features"),
}


def read_declaration(path: Path) -> dict[str, Any]:
    """Return those fields of a `Problem` that ``path`` declares.

    Raises:
        UserError: the file can't be read, or is no whole declaration.
    """
    text = read(path)
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not valid YAML: {one_line(error)}") from error
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
        raise UserError(f"{path}: {one_line(error)}") from error


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

"""What ``problem.yaml`` declares, checked."""

import math
from pathlib import Path
from typing import Any

import yaml

from engine.core import Direction, Feature, Judge, JudgeKind, KnownScore, Limits, UserError
from engine.section import require

_KEYS = {
    *("direction", "entry_point", "limits"),
    *("isolate_cases", "modules", "known_scores", "features", "target"),
    *("command", "metric"),
}
_OF_CASES = ("entry_point", "isolate_cases", "modules")  # and of no command
_LIMITS = {"seconds", "memory_mb"}
_COMMANDS_LIMITS = {*_LIMITS, "processes", "scratch_mb"}


def read(path: Path) -> str:
    """Return the text of a problem's file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read as UTF-8 text: {error}") from error


def one_line(error: BaseException) -> str:
    """Return what an error says, in one line."""
    return " ".join(str(error).split())


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
        return _declared(raw)
    except KeyError as error:
        raise UserError(f"{path}: key {error} is missing") from error
    except (OverflowError, TypeError, ValueError) as error:  # of an int of hundreds of digits
        raise UserError(f"{path}: {one_line(error)}") from error


def _declared(raw: dict[str, Any]) -> dict[str, Any]:
    direction, judge = raw["direction"], _judge(raw)
    entry_point = "" if judge else raw["entry_point"]
    modules, features = raw.get("modules", []), raw.get("features", {})
    require(direction in list(Direction), "direction", direction, " or ".join(Direction))
    is_name = isinstance(entry_point, str) and all(map(str.isidentifier, entry_point.split(".")))
    must_be = "the name of a function, or of its module and it: module.function"
    require(judge is not None or is_name, "entry_point", entry_point, must_be)
    are_names = isinstance(modules, list) and all(
        isinstance(name, str) and all(map(str.isidentifier, name.split("."))) for name in modules
    )
    require(are_names, "modules", modules, "a list of names of modules")
    must_be = "a mapping, NAME: [low, high, bins]"
    require(isinstance(features, dict), "features", features, must_be)
    return {
        "direction": Direction(direction),
        "entry_point": entry_point,
        "limits": _limits(raw["limits"], _COMMANDS_LIMITS if judge else _LIMITS),
        "judge": judge,
        "isolate_cases": _flag("isolate_cases", raw.get("isolate_cases", False)),
        "modules": tuple(modules),
        "known_scores": tuple(
            KnownScore(
                score=float(known["score"]),
                source=str(known["source"]),
                comparable=_flag("comparable", known.get("comparable", True)),
            )
            for known in raw.get("known_scores", ())
        ),
        "features": tuple(_feature(name, given) for name, given in features.items()),
        "target": _target(raw["target"]) if "target" in raw else None,
    }


def _judge(raw: dict[str, Any]) -> Judge | None:
    """Return the command that judges programs; None where ``evaluator.py`` does."""
    if "command" not in raw:
        require("metric" not in raw, "metric", raw.get("metric"), "left out without a command")
        return None
    for key in _OF_CASES:
        require(key not in raw, key, raw.get(key), "left out with a command, which runs programs")
    command, metric = raw["command"], raw.get("metric", "score")
    are_words = isinstance(command, list) and all(isinstance(each, str) for each in command)
    require(are_words and any(command[:1]), "command", command, "a list: program, arguments")
    require(isinstance(metric, str) and metric != "", "metric", metric, "the name of a metric")
    limits = raw["limits"] if isinstance(raw["limits"], dict) else {}
    counts = {key: limits[key] for key in ("processes", "scratch_mb") if key in limits}
    for key, count in counts.items():
        require(type(count) is int and count > 0, key, count, "a whole number above 0")
    return Judge(kind=JudgeKind.COMMAND, command=tuple(command), metric=metric, **counts)


def _limits(value: Any, keys: set[str]) -> Limits:
    if not isinstance(value, dict):
        raise ValueError(f"limits must be a mapping with the keys {', '.join(sorted(keys))}")
    if unknown := sorted(set(value) - keys, key=str):
        raise ValueError(f"unknown limit {unknown[0]!r}; valid: {', '.join(sorted(keys))}")
    seconds, memory_mb = float(value["seconds"]), float(value["memory_mb"])
    if not (0 < seconds < math.inf and 1 <= memory_mb < math.inf):  # NaN fails both
        raise ValueError("limits must be finite, seconds above 0 and memory_mb at least 1")
    return Limits(seconds=seconds, memory_bytes=int(memory_mb) << 20)


def _target(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    require(is_number and math.isfinite(value), "target", value, "a finite number")
    return float(value)


def _flag(key: str, value: Any) -> bool:
    require(isinstance(value, bool), key, value, "true or false")  # bool("false") would be True
    return bool(value)


def _feature(name: Any, value: Any) -> Feature:
    is_range = isinstance(value, list) and len(value) == 3 and type(value[2]) is int
    must_be = "[low, high, bins], two numbers and a count"
    require(isinstance(name, str) and is_range, f"feature {name!r}", value, must_be)
    return Feature(name=name, low=float(value[0]), high=float(value[1]), bins=value[2])

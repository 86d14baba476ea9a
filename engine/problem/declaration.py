"""What ``problem.yaml`` declares, checked."""

import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from engine.core import (
    Direction,
    Feature,
    Improvement,
    Judge,
    JudgeKind,
    KnownScore,
    Limits,
    UserError,
)
from engine.core.problem import MOST_MEMORY_MB
from engine.documents import read_yaml
from engine.problem.places import lines_of_keys, place
from engine.section import require, shown, valid_keys


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
        raw = read_yaml(text)
        lines = lines_of_keys(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = place(path, None if mark is None else mark.line + 1)
        raise UserError(f"{where}: it is not valid YAML: {one_line(error)}; mend it") from error
    if not isinstance(raw, dict):
        raise UserError(f"{path} is not a mapping; it needs the keys {', '.join(_KEYS)}")
    for key in raw:
        if key not in _KEYS:
            where = place(path, lines.get(str(key)))
            raise UserError(f"{where}: unknown key {key!r}; {valid_keys(str(key), list(_KEYS))}")
    return _declared(path, raw, lines)


def _declared(path: Path, raw: dict[str, Any], lines: Mapping[str, int]) -> dict[str, Any]:
    """Return the fields; ``path`` and ``lines`` are for the messages."""
    has_command = "command" in raw
    for key in _NEEDED:
        if key not in raw and not (has_command and key in _OF_CASES):
            raise UserError(f"{path}: key {key!r} is missing; add a line, {key}: {_NEEDED[key]}")
    for key in _OF_CASES if has_command else _OF_COMMANDS:
        if key in raw:
            why = "with a command, which runs programs" if has_command else "without a command"
            raise UserError(f"{place(path, lines.get(key))}: leave {key} out {why}")
    fields = {}
    for key, value in raw.items():
        where = place(path, lines.get(key))
        try:
            fields[key] = _KEYS[key](value)
        except KeyError as error:
            raise UserError(f"{where}: key {error} is missing in {key}; add it") from error
        except (OverflowError, ValueError) as error:  # of an int of hundreds of digits
            raise UserError(f"{where}: {one_line(error)}") from error
    return {**_DEFAULTS, **_judged(path, raw, lines, fields)}


def _judged(
    path: Path, raw: dict[str, Any], lines: Mapping[str, int], fields: dict[str, Any]
) -> dict[str, Any]:
    """Return the fields with the judge in place of the keys that tell of a command."""
    command, metric = fields.pop("command", None), fields.pop("metric", "score")
    keys = _LIMITS if command is None else (*_LIMITS, *_LIMITS_OF_COMMANDS)
    for key in raw["limits"]:
        if key not in keys:
            where = place(path, lines.get("limits"))
            raise UserError(f"{where}: unknown limit {key!r}; {valid_keys(str(key), keys)}")
    if command is None:
        return fields
    counts = {key: raw["limits"][key] for key in _LIMITS_OF_COMMANDS if key in raw["limits"]}
    judge = Judge(kind=JudgeKind.COMMAND, command=command, metric=metric, **counts)
    return {**fields, "entry_point": "", "judge": judge}


def _direction(value: Any) -> Direction:
    require(value in list(Direction), "direction", value, " or ".join(Direction))
    return Direction(value)


def _entry_point(value: Any) -> str:
    is_name = isinstance(value, str) and all(map(str.isidentifier, value.split(".")))
    must_be = "the name of a function, or of its module and it: module.function"
    require(is_name, "entry_point", value, must_be)
    return str(value)


def _command(value: Any) -> tuple[str, ...]:
    are_words = isinstance(value, list) and all(isinstance(each, str) for each in value)
    require(are_words and any(value[:1]), "command", value, "a list: program, arguments")
    return tuple(value)


def _metric(value: Any) -> str:
    require(isinstance(value, str) and value != "", "metric", value, "the name of a metric")
    return str(value)


def _modules(value: Any) -> tuple[str, ...]:
    are_names = isinstance(value, list) and all(
        isinstance(name, str) and all(map(str.isidentifier, name.split("."))) for name in value
    )
    require(are_names, "modules", value, "a list of names of modules")
    return tuple(value)


def _known_scores(value: Any) -> tuple[KnownScore, ...]:
    are_mappings = isinstance(value, list) and all(isinstance(known, dict) for known in value)
    require(are_mappings, "known_scores", value, "a list of {score: NUMBER, source: TEXT}")
    return tuple(
        KnownScore(
            score=_number("score", known["score"]),
            source=str(known["source"]),
            comparable=_flag("comparable", known.get("comparable", True)),
        )
        for known in value
    )


def _features(value: Any) -> tuple[Feature, ...]:
    must_be = "a mapping, NAME: [low, high, bins]"
    require(isinstance(value, dict), "features", value, must_be)
    return tuple(_feature(name, given) for name, given in value.items())


def _limits(value: Any) -> Limits:
    if not isinstance(value, dict):
        raise ValueError("limits must be a mapping with the keys seconds, memory_mb")
    seconds = _number("seconds", value["seconds"])
    memory_mb = _number("memory_mb", value["memory_mb"])
    must_be = f"at least 1 and below {MOST_MEMORY_MB:,.0f}"
    require(1 <= memory_mb < MOST_MEMORY_MB, "memory_mb", memory_mb, must_be)
    for key, most in _LIMITS_OF_COMMANDS.items():
        count = value.get(key, 1)
        must_be = f"a whole number above 0 and below {most:,}"
        require(type(count) is int and 0 < count < most, key, count, must_be)
    return Limits(seconds=seconds, memory_bytes=int(memory_mb) << 20)


def _target(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    require(is_number and math.isfinite(value), "target", value, "a finite number")
    return float(value)


def _number(key: str, value: Any) -> float:
    try:
        return float(value)  # YAML takes 1e5 for a text
    except (TypeError, ValueError):
        raise ValueError(f"{key} is {shown(value)}; it must be a number") from None


def _flag(key: str, value: Any) -> bool:
    require(isinstance(value, bool), key, value, "true or false")  # bool("false") would be True
    return bool(value)


def _feature(name: Any, value: Any) -> Feature:
    is_range = isinstance(value, list) and len(value) == 3 and type(value[2]) is int
    must_be = "[low, high, bins], two numbers and a count"
    require(isinstance(name, str) and is_range, f"feature {name!r}", value, must_be)
    low, high = (_number(f"feature {name!r}", each) for each in value[:2])
    return Feature(name=name, low=low, high=high, bins=value[2])


def _improvement(value: Any) -> Improvement:
    is_whole = isinstance(value, dict) and value.keys() == {"solution", "effort"}
    require(is_whole, "improvement", value, "{solution: [NAMES OF OUTPUTS], effort: COUNT}")
    names, effort = value["solution"], value["effort"]
    are_names = isinstance(names, list) and all(isinstance(each, str) for each in names)
    require(are_names and any(names), "solution", names, "a list of names of outputs")
    require(type(effort) is int and effort > 0, "effort", effort, "a whole number above 0")
    return Improvement(solution=tuple(names), effort=effort)


_KEYS: Mapping[str, Callable[[Any], Any]] = {
    "direction": _direction,
    "entry_point": _entry_point,
    "limits": _limits,
    "isolate_cases": functools.partial(_flag, "isolate_cases"),
    "modules": _modules,
    "known_scores": _known_scores,
    "features": _features,
    "improvement": _improvement,
    "target": _target,
    "command": _command,
    "metric": _metric,
}
"""What reads the value of each key; it raises ValueError for one that it does not take."""
_NEEDED = {
    "direction": " or ".join(Direction),
    "entry_point": "NAME_OF_A_FUNCTION",
    "limits": "{seconds: 5, memory_mb: 512}",
}
_DEFAULTS: Mapping[str, Any] = {
    "isolate_cases": False,
    "modules": (),
    "known_scores": (),
    "features": (),
    "target": None,
    "judge": None,
    "improvement": None,
}
_LIMITS = ("seconds", "memory_mb")
_LIMITS_OF_COMMANDS = {"processes": 1 << 22, "scratch_mb": int(MOST_MEMORY_MB)}
"""With what each is below; Linux numbers no more processes than that."""
_OF_CASES = ("entry_point", "improvement", "isolate_cases", "modules")  # and of no command
_OF_COMMANDS = ("metric",)

"""From the command line to `RunSettings`: the only place that knows Hydra.

Covers: composing the groups under ``engine/conf``, offering every folder in ``evaluators`` as a
problem, errors that list the valid keys and values, sweeps, and saving a run's settings and reading
them back. Does not cover the bounds of the values: ``engine.bounds``.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

import yaml
from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from engine.bounds import check
from engine.core import UserError
from engine.problem import POOL, shipped
from engine.settings import RunSettings

_CONF = Path(__file__).parent / "conf"


def resolve(arguments: Sequence[str]) -> RunSettings:
    """Return the settings that ``key=value`` arguments make of the defaults.

    Raises:
        UserError: an unknown key or value, listing the valid ones, or a value out of bounds.
    """
    with _hydra():
        overrides = _parse(arguments)
        valid = _valid_keys()
        for override in overrides:
            _check_known(override, valid)
        values = _values(_compose([str(override.input_line) for override in overrides]))
    values["model"]["name"] = next(
        (str(o.value()) for o in reversed(overrides) if o.key_or_group == "model"), "smollm2"
    )
    path = values["model"]["path"]
    if path is not None and any(o.key_or_group == "model.path" for o in overrides):
        values["model"]["name"] = Path(path).name
    return _checked(values)


def expand(arguments: Sequence[str]) -> list[list[str]]:
    """Return the jobs of a sweep: one list of arguments for each combination of values.

    Raises:
        UserError: an argument is not of the form key=value.
    """
    batches = BasicSweeper.split_arguments(_parse(arguments), max_batch_size=None)
    return [list(job) for batch in batches for job in batch]


def save(settings: RunSettings, path: Path) -> None:
    """Write the settings, as resolved, as YAML."""
    text = yaml.safe_dump(dataclasses.asdict(settings), sort_keys=False)
    path.write_text(text, encoding="utf-8")


def load(path: Path) -> RunSettings:
    """Read settings written by `save`.

    Raises:
        UserError: the file is missing or isn't what `save` writes.
    """
    try:
        return _checked(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, yaml.YAMLError, UserError) as error:
        raise UserError(f"{path} can't be read as a run's settings: {_line(error)}") from error


class _hydra:
    """Hydra with our groups, for the length of a ``with`` block."""

    def __enter__(self) -> None:
        store = ConfigStore.instance()
        for name, folder in shipped().items():
            store.store(group="problem", name=name, node={"path": str(folder)})
        GlobalHydra.instance().clear()
        self._context = initialize_config_dir(config_dir=str(_CONF), version_base="1.3")
        self._context.__enter__()

    def __exit__(self, *exception: object) -> None:
        self._context.__exit__(*exception)


def quoted(text: str) -> str:
    """Return ``text`` as a string of Hydra's grammar, which takes few characters as they are."""
    # A backslash is only special before a quote.
    doubled = re.sub(r"(\\+)(?='|\Z)", r"\1\1", text)
    return "'" + doubled.replace("'", r"\'") + "'"


def _parse(arguments: Sequence[str]) -> list[Override]:
    parser = OverridesParser.create()
    overrides = []
    for argument in arguments:
        try:
            overrides.append(parser.parse_override(_as_text(argument)))
        except (HydraException, ValueError) as error:  # ValueError: an int of thousands of digits
            raise UserError(
                f"{argument[:200]!r} can't be read; arguments have the form key=value, and a value "
                "with spaces, commas or quotes the form \"key='value'\""
            ) from error
    return overrides


def _as_text(argument: str) -> str:
    """Quote the value of a key that takes text, so that paths and names may be typed as they are.

    Left alone: what is quoted already, several values for a sweep, ``null`` and interpolations.
    """
    key, _, value = argument.partition("=")
    plain = value not in ("", "null") and value[0] not in "'\"[{" and not {",", "$"} & set(value)
    return f"{key}={quoted(value)}" if key in _TEXT_KEYS and plain else argument


def _compose(arguments: Sequence[str]) -> DictConfig:
    try:
        return compose(config_name="config", overrides=list(arguments))
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_line(error)) from error


def _check_known(override: Override, valid: Sequence[str]) -> None:
    key = override.key_or_group + (f"@{override.package}" if override.package else "")
    given = str(override.input_line or key)
    if override.is_sweep_override():
        raise UserError(f"{given!r} gives several values; add --multirun to run each of them")
    if not override.is_add() and not override.is_delete() and not override.is_force_add():
        options = _options(key)
        if options:
            if str(override.value()) not in options:
                raise UserError(
                    f"unknown {key} {override.value()!r}; valid: {', '.join(options)}"
                    + (" (or give problem.path=FOLDER)" if key == "problem" else "")
                )
            return
        if key in valid:
            return
        close = difflib.get_close_matches(key, valid, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UserError(f"unknown key {key!r}; {hint}valid keys: {', '.join([*_GROUPS, *valid])}")
    raise UserError(f"{given!r} adds or removes a key; only key=value is taken")


_GROUPS = ("problem", "model", "cache")
SHIPPED = "shipped"
"""Among a pool's sources, the pool that comes with the problem."""
_TEXT_KEYS = (
    "problem.path",
    "model.path",
    "model.cache_dir",
    "cache.folder",
    "cache.server",
    "pipeline.speculate",
    "pool.sources",
    "data",
    "runs",
    "name",
)


def _options(group: str) -> list[str]:
    if group == "problem":
        return sorted(shipped())
    if group in ("model", "cache"):
        return sorted(path.stem for path in (_CONF / group).glob("*.yaml"))
    return []


@functools.cache
def _valid_keys() -> tuple[str, ...]:
    return tuple(_keys(_compose([])))


def _keys(config: DictConfig, prefix: str = "") -> Iterator[str]:
    for name in map(str, config):
        key = f"{prefix}{name}"
        value = config._get_node(name)
        if isinstance(value, DictConfig) and not value._is_none():
            yield from _keys(value, f"{key}.")
        else:
            yield key


def _values(config: DictConfig) -> dict[str, Any]:
    """Return what was composed, with nothing left open and folders in full."""
    try:
        values = cast(dict[str, Any], OmegaConf.to_container(config, resolve=True))
    except OmegaConfBaseException as error:
        raise UserError(_line(error)) from error
    values["problem"] = str(_full(values["problem"]["path"], "problem.path"))
    if values["data"] is not None:
        values["data"] = str(_full(values["data"], "data", "a file or a folder, or null"))
    sources = values["pool"]["sources"]
    if isinstance(sources, str):  # the one of a command line
        sources = [sources]
    if isinstance(sources, list):
        sources = [str(_source(each, Path(values["problem"]))) for each in sources]
    values["pool"]["sources"] = sources
    model, cache = values["model"], values["cache"]
    ours = f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/brood"
    if model["cache_dir"] is None:
        model["cache_dir"] = ours
    model["cache_dir"] = str(_full(model["cache_dir"], "model.cache_dir"))
    if cache["folder"] is None:
        cache["folder"] = f"{ours}/kv"
    cache["folder"] = str(_full(cache["folder"], "cache.folder"))
    if model["path"]:
        folder = _full(model["path"], "model.path")
        if folder.is_dir():
            model["path"] = str(folder)
    if values["evaluation"]["workers"] is None:
        values["evaluation"]["workers"] = max(1, len(os.sched_getaffinity(0)) // 2)
    return values


def _source(given: object, problem: Path) -> Path:
    """Return a pool's folder in full; ``SHIPPED`` is that of the problem in the folder ``problem``.

    Raises:
        UserError: the problem has none.
    """
    if given != SHIPPED:
        return _full(given, "pool.sources", "folders")
    if not (problem / POOL).is_dir():
        raise UserError(
            f"pool.sources={SHIPPED}: problem {problem.name} comes with no pool; name a folder"
        )
    return problem / POOL


def _full(given: object, key: str, must_be: str = "a folder") -> Path:
    """Return a path in full, because a run may be resumed from elsewhere."""
    try:
        if isinstance(given, str) and given:
            return Path(given).expanduser().absolute()
    except RuntimeError as error:  # `~somebody` who has no home here
        raise UserError(f"{key} is {given!r}, which can't be resolved: {error}") from error
    raise UserError(f"{key} is {given!r}; it must be {must_be}")


def _checked(values: object) -> RunSettings:
    settings = _build(RunSettings, values, key="")
    check(settings)
    return settings


_T = TypeVar("_T")


def _build(kind: type[_T], values: object, *, key: str) -> _T:
    """Make a settings dataclass of a mapping, checking every name and type.

    Raises:
        UserError: names the key that is missing, unknown or of the wrong type.
    """
    types = get_type_hints(kind)
    if not isinstance(values, dict):
        raise UserError(f"{key[:-1] or 'the settings'} must have the keys {', '.join(types)}")
    unknown = sorted(set(map(str, values)) ^ set(types))
    if unknown:
        raise UserError(f"key {key}{unknown[0]!r} is unknown or missing; valid: {', '.join(types)}")
    return kind(
        **{name: _typed(each, values[name], f"{key}{name}") for name, each in types.items()}
    )


def _typed(kind: Any, value: object, key: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return _build(cast(type, kind), value, key=f"{key}.")
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise UserError(f"{key} is {value!r}; it must be a list, as in {key}=[A,B]")
        return tuple(_typed(get_args(kind)[0], each, key) for each in value)
    if get_origin(kind) is dict:
        if not isinstance(value, dict):
            raise UserError(f"{key} is {value!r}; it must be a mapping")
        return {str(name): _typed(float, each, f"{key}.{name}") for name, each in value.items()}
    kinds = get_args(kind) or (kind,)
    if value is None and type(None) in kinds:
        return None
    wanted = kinds[0]
    if wanted is float and type(value) is int:
        return float(value) if abs(value) < 2**1023 else math.inf if value > 0 else -math.inf
    if type(value) is not wanted:
        names = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
        null = " or null" if type(None) in kinds else ""
        raise UserError(f"{key} is {value!r}; it must be {names[wanted]}{null}")
    return value


def _line(error: Exception) -> str:
    return " ".join(str(error).split())

"""From the command line to `RunSettings`: the only place that knows Hydra.

Covers: composing the groups under ``engine/conf``, offering every folder in ``evaluators`` as a
problem, errors that list the valid keys and values, sweeps, and saving a run's settings and reading
them back. Does not cover the bounds of the values: ``engine.settings``.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
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

from engine.core import UserError
from engine.problem import shipped
from engine.settings import RunSettings, check

_CONF = Path(__file__).parent / "conf"


def resolve(arguments: Sequence[str]) -> RunSettings:
    """Return the settings that ``key=value`` arguments make of the defaults.

    Raises:
        UserError: an unknown key or value, listing the valid ones, or a value out of bounds.
    """
    with _hydra():
        overrides = _parse(arguments)
        for override in overrides:
            _check_known(override)
        config = _compose(arguments)
    path_given = any(override.key_or_group == "model.path" for override in overrides)
    preset = next((o.value() for o in overrides if o.key_or_group == "model"), "smollm2")
    if config.model.path is not None and path_given:
        preset = Path(str(config.model.path)).name
    return _settings(config, model_name=str(preset))


def expand(arguments: Sequence[str]) -> list[list[str]]:
    """Return the jobs of a sweep: one list of arguments for each combination of values."""
    batches = BasicSweeper.split_arguments(_parse(arguments), max_batch_size=None)
    return [list(job) for batch in batches for job in batch]


def save(settings: RunSettings, path: Path) -> None:
    """Write the settings, as resolved, as YAML."""
    path.write_text(yaml.safe_dump(dataclasses.asdict(settings), sort_keys=False))


def load(path: Path) -> RunSettings:
    """Read settings written by `save`.

    Raises:
        UserError: the file is missing or isn't what `save` writes.
    """
    try:
        return _checked(yaml.safe_load(path.read_text()))
    except (OSError, yaml.YAMLError) as error:
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


def _parse(arguments: Sequence[str]) -> list[Override]:
    try:
        return OverridesParser.create().parse_overrides(list(arguments))
    except HydraException as error:
        raise UserError(f"{_line(error)}; arguments have the form key=value") from error


def _compose(arguments: Sequence[str]) -> DictConfig:
    try:
        return compose(config_name="config", overrides=list(arguments))
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_line(error)) from error


def _check_known(override: Override) -> None:
    key = override.key_or_group
    given = str(override.input_line or key)
    if override.is_sweep_override():
        raise UserError(f"{given} gives several values; add --multirun to run each of them")
    if not override.is_add() and not override.is_delete() and not override.is_force_add():
        options = _options(key)
        if options:
            if str(override.value()) not in options:
                raise UserError(
                    f"unknown {key} {override.value()!r}; valid: {', '.join(options)}"
                    + (" (or give problem.path=FOLDER)" if key == "problem" else "")
                )
            return
        valid = list(_keys(_compose([])))
        if key in valid:
            return
        close = difflib.get_close_matches(key, valid, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UserError(f"unknown key {key!r}; {hint}valid keys: {', '.join([*_GROUPS, *valid])}")
    raise UserError(f"{given!r} adds or removes a key; only key=value is taken")


_GROUPS = ("problem", "model")


def _options(group: str) -> list[str]:
    if group not in _GROUPS:
        return []
    return sorted(GlobalHydra.instance().config_loader().get_group_options(group))


def _keys(config: DictConfig, prefix: str = "") -> Iterator[str]:
    for name in map(str, config):
        key = f"{prefix}{name}"
        value = config._get_node(name)
        if isinstance(value, DictConfig) and not value._is_none():
            yield from _keys(value, f"{key}.")
        else:
            yield key


def _settings(config: DictConfig, *, model_name: str) -> RunSettings:
    values = OmegaConf.to_container(config, resolve=True)
    assert isinstance(values, dict)
    values["problem"] = str(Path(values["problem"]["path"]).expanduser().absolute())
    values["model"]["name"] = model_name
    values["model"]["cache_dir"] = str(_cache_dir(values["model"]["cache_dir"]))
    if values["evaluation"]["workers"] is None:
        values["evaluation"]["workers"] = max(1, len(os.sched_getaffinity(0)) // 2)
    return _checked(values)


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
        raise UserError(f"{key or 'the settings'} must have the keys {', '.join(types)}")
    unknown = sorted(set(map(str, values)) ^ set(types))
    if unknown:
        raise UserError(f"key {key}{unknown[0]!r} is unknown or missing; valid: {', '.join(types)}")
    return kind(
        **{name: _typed(each, values[name], f"{key}{name}") for name, each in types.items()}
    )


def _typed(kind: Any, value: object, key: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return _build(cast(type, kind), value, key=f"{key}.")
    if get_origin(kind) is dict:
        if not isinstance(value, dict):
            raise UserError(f"{key} is {value!r}; it must be a mapping")
        return {str(name): _typed(float, each, f"{key}.{name}") for name, each in value.items()}
    kinds = get_args(kind) or (kind,)
    if value is None and type(None) in kinds:
        return None
    wanted = kinds[0]
    if wanted is float and type(value) is int:
        return float(value)
    if wanted is str and type(value) in (int, float):
        return str(value)
    if type(value) is not wanted:
        names = {int: "a whole number", float: "a number", str: "text"}
        null = " or null" if type(None) in kinds else ""
        raise UserError(f"{key} is {value!r}; it must be {names[wanted]}{null}")
    return value


def _cache_dir(given: str | None) -> Path:
    if given is not None:
        return Path(given).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "brood"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())

"""From the command line to `RunSettings`: the only place that knows Hydra.

Covers: composing the groups under ``engine/conf``, offering every folder in ``evaluators`` as a
problem, errors that list the valid keys and values, sweeps, and saving a run's settings and reading
them back. Does not cover which values are allowed: ``engine.settings``.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from engine.core import UserError
from engine.problem import POOL, shipped
from engine.section import valid_keys
from engine.settings import RunSettings, settings_of

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
        values = _values(_compose([_composable(override) for override in overrides]))
    values["model"]["name"] = next(
        (str(o.value()) for o in reversed(overrides) if o.key_or_group == "model"), "smollm2"
    )
    path = values["model"]["path"]
    if path is not None and any(o.key_or_group == "model.path" for o in overrides):
        values["model"]["name"] = Path(path).name
    return settings_of(values)


def expand(arguments: Sequence[str]) -> list[list[str]]:
    """Return the jobs of a sweep: one list of arguments for each combination of values.

    Raises:
        UserError: an argument is not of the form key=value.
    """
    values = {}  # by key, the last one given
    for override in _parse(arguments):
        key = override.get_key_element()
        values[key] = [f"{key}={value}" for value in _values_of(override)]
    return [list(job) for job in itertools.product(*values.values())]


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
        return settings_of(yaml.safe_load(path.read_text(encoding="utf-8")))
    except UserError as error:
        hint = "a run goes on with the version of Brood that began it"
        raise UserError(f"{path} can't be read as a run's settings: {error}; {hint}") from error
    except (OSError, ValueError, yaml.YAMLError) as error:
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


def _values_of(override: Override) -> Iterator[str]:
    """Yield the values of an argument in Hydra's grammar; a sweep has several."""
    if override.is_discrete_sweep():
        return override.sweep_string_iterator()
    if override.is_sweep_override():
        raise UserError(f"{override.input_line!r} names no values one by one; give KEY=A,B,C")
    return iter([override.get_value_element_as_str()])


def _as_text(argument: str) -> str:
    """Write an argument as Hydra's grammar has it, so that it may be typed as it is.

    Quoted is the value of a key that takes text, such as a path or a name.

    Left alone: what is quoted already, several values for a sweep, ``null`` and interpolations.
    """
    key, _, value = argument.partition("=")
    path, _, operator = key.partition("search.operators.")
    if not path and ":" in operator:  # module:Class, of which Hydra's grammar makes no key
        escaped = operator.replace(":", "\\:")
        return f"search.operators={{{escaped}: {value}}}"
    plain = value not in ("", "null") and value[0] not in "'\"[{" and not {",", "$"} & set(value)
    return f"{key}={quoted(value)}" if key in _TEXT_KEYS and plain else argument


def _composable(override: Override) -> str:
    """Return an argument as Hydra takes it, which adds keys to a mapping only if told to."""
    return f"{'++' * _is_open(override.key_or_group)}{override.input_line}"


def _is_open(key: str) -> bool:
    """Whether somebody else knows which keys there are: vLLM, or a registry of policies."""
    return key in ("model.engine", "search.operators") or key.startswith(
        tuple(f"{node}." for node in _OPEN)
    )


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
        if key in valid or _is_open(key):
            return
        raise UserError(f"unknown key {key!r}; {valid_keys(key, [*_GROUPS, *valid])}")
    raise UserError(f"{given!r} adds or removes a key; only key=value is taken")


_GROUPS = ("problem", "model", "cache")
_OPEN = (
    "model.engine",
    "search.parent",
    "search.mix",
    "search.novelty",
    "search.operators",
    "islands.topology",
    "width",
)
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
    return tuple(_keys(OmegaConf.to_container(_compose([]))))


def _keys(values: Any, prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _keys(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


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


def _line(error: Exception) -> str:
    return " ".join(str(error).split())

"""From the command line to `RunSettings`: the only place that knows Hydra.

Covers: composing the groups under ``engine/conf``, offering every folder in ``evaluators`` as a
problem, errors that list the valid keys and values, sweeps, and saving a run's settings and reading
them back, on another machine too. Does not cover which values are allowed: ``engine.settings``.
"""

import dataclasses
import functools
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from engine.core import UserError
from engine.documents import read_yaml
from engine.earlier import as_now
from engine.inference.weights import longest_context
from engine.preset import settle
from engine.problem import KEPT, POOL, shipped
from engine.section import valid_keys
from engine.settings import RunSettings, settings_of

SHIPPED = "shipped"
"""Among a pool's sources, the pool that comes with the problem."""
_CONF = Path(__file__).parent / "conf"
GROUPS = ("problem", "model", "cache", "learning", "fill", "cluster", "method")
"""What can be chosen as a whole, by name; see `options`."""
# Somebody else knows which keys there are below these: vLLM, or a registry of policies.
_OPEN = (
    "model.engine.",
    "search.cells.",
    "search.parent.",
    "search.mix.",
    "search.novelty.",
    "search.inspirations.",
    "search.operators.",
    "islands.topology.",
    "islands.schedule.",
    "width.",
)
_SHARES = (
    ("model", "max_tokens", 8),
    ("prompts", "history_tokens", 4),
    ("prompts", "growth_tokens", 8),
)
"""Keys that may be null, and the share of ``model.max_model_len`` that they are then."""
OF_MACHINE = (
    "problem.path",
    "data",
    "model.path",
    "model.cache_dir",
    "model.threads",
    "model.kv_cache_gb",
    "model.gpu_memory_utilization",
    "cache.folder",
    "cache.server",
    "cache.remote",
    "log",
    "prometheus",
    "opentelemetry",
)
"""What a run that goes on may be given anew: where things lie, what a machine has, who watches."""
_FOLDERS = ("problem.path", "data", "model.cache_dir", "cache.folder")
_TEXT_KEYS = (
    "problem.path",
    "model.path",
    "model.cache_dir",
    "cache.folder",
    "cache.server",
    "cache.remote",
    "advisor.endpoint.url",
    "advisor.endpoint.model",
    "pool.sources",
    "data",
    "metric",
    "runs",
    "store",
    "name",
    "opentelemetry",
)


def resolve(arguments: Sequence[str]) -> RunSettings:
    """Return the settings that ``key=value`` arguments make of the defaults.

    Raises:
        UserError: an unknown key or value, listing the valid ones, or a value out of bounds.
    """
    overrides = _parse(arguments)
    given = {override.key_or_group: override.value() for override in overrides}
    chosen = [_known(override) for override in overrides]
    if given.get("model.path") is not None and "model" not in given:
        chosen.append("model=derived")
    without = [each for each in chosen if not each.startswith("method=")]
    plain = composed(without)
    values = settle(plain if without == chosen else composed(chosen), plain, given=given)
    values = _in_full(values, given)
    model = values["model"]
    by_path = "model.path" in given and model["path"] is not None
    model["name"] = Path(model["path"]).name if by_path else given.get("model", "smollm2")
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


def composed(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the defaults with some changes, before what follows from this machine.

    Args:
        arguments: as Hydra takes them.

    Raises:
        UserError: Hydra refuses one.
    """
    for name, folder in shipped().items():
        ConfigStore.instance().store(group="problem", name=name, node={"path": str(folder)})
    try:
        with initialize_config_dir(config_dir=str(_CONF), version_base="1.3"):
            config = compose(config_name="config", overrides=list(arguments))
        values: Any = OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_line(error)) from error
    else:
        return dict(values)


def options(group: str) -> list[str]:
    """Return the names that one of `GROUPS` can be chosen by."""
    if group == "problem":
        return sorted(shipped())
    return sorted(path.stem for path in (_CONF / group).glob("*.yaml"))


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
        return settings_of(_values(path))
    except UserError as error:
        hint = (
            "a run goes on with the version of Brood that began it; this one reports on it, and "
            "begins a new run from its programs with pool.sources=[FOLDER]"
        )
        raise UserError(f"{path} can't be read as a run's settings: {error}; {hint}") from error


def load_recorded(folder: Path) -> RunSettings:
    """Return the settings of the run in a folder, for who reads what it did.

    Those of an earlier version are given as near as this version has them.

    Raises:
        UserError: the folder is no run, or its settings are not what any version writes.
    """
    path = _file_of(folder)
    values = _values(path)
    try:
        settings = settings_of(values)
    except UserError as error:
        if not isinstance(values, dict):
            raise UserError(f"{path} can't be read as a run's settings: {error}") from error
        now = dataclasses.asdict(resolve(["fill=none"]))
        try:
            settings = settings_of(as_now(values, now=now))
        except (UserError, AttributeError, TypeError) as other:
            raise UserError(
                f"{path} can't be read as a run's settings, nor as an earlier version's: {other}"
            ) from error
    return _with_problem(settings, folder)


def load_resumed(folder: Path, *, changes: Sequence[str] = ()) -> RunSettings:
    """Return the settings with which the run in a folder goes on where it lies now.

    Args:
        folder: the run's.
        changes: ``key=value`` arguments with keys of `OF_MACHINE`.

    Raises:
        UserError: see `load_run`; or there is no such key, its value is wrong, or the problem is
            nowhere.
    """
    given = {override.key_or_group: override.value() for override in _parse(changes)}
    for key in given:
        if key not in OF_MACHINE:
            raise UserError(
                f"a run goes on as it was configured, so {key}= can't be given with resume=; "
                f"what a machine may have elsewhere can: {', '.join(OF_MACHINE)}"
            )
    settings = _with_problem(load_run(folder), folder)
    values = dataclasses.asdict(settings)
    for key, value in given.items():
        if value is not None and key in _FOLDERS:
            value = _full(value, key)
        section, _, name = ("problem" if key == "problem.path" else key).partition(".")
        (values[section] if name else values)[name or section] = value
    values["opentelemetry"] = _target(values["opentelemetry"])
    if not Path(values["problem"]).exists():
        raise UserError(
            f"the problem of {folder} is not at {values['problem']} here; give its folder, as in "
            f"resume={folder} problem.path=FOLDER"
        )
    return settings_of(values)


def _with_problem(settings: RunSettings, folder: Path) -> RunSettings:
    """Return settings with the problem where it is found.

    One that is not at its old place is looked for in the run's folder, where one that was made in
    Python is kept, and among those that come with the project. Whether it is the same, its
    fingerprint says.
    """
    problem = Path(settings.problem)
    if problem.exists():
        return settings
    places = (folder.absolute() / KEPT / problem.name, shipped().get(problem.name, problem))
    found = next((each for each in places if each.exists()), problem)
    return dataclasses.replace(settings, problem=str(found))


def _values(path: Path) -> Any:
    """Return what a file of settings holds.

    Raises:
        UserError: it can't be read, or is no YAML.
    """
    try:
        return read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"{path} can't be read as a run's settings: {_line(error)}") from error


def load_run(folder: Path) -> RunSettings:
    """Return the settings of the run in a folder.

    Raises:
        UserError: the folder is no run, or was written by another version.
    """
    return load(_file_of(folder))


def _file_of(folder: Path) -> Path:
    """Return the file with the settings of the run in a folder.

    Raises:
        UserError: there is none.
    """
    path = folder / "config.yaml"
    if not path.is_file():
        raise UserError(f"{folder} is not a run: it has no {path.name}; give a folder under runs/")
    return path


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


def _known(override: Override) -> str:
    """Return an argument as Hydra takes it.

    Raises:
        UserError: it has several values, or a key or value that there is not.
    """
    key = override.key_or_group + (f"@{override.package}" if override.package else "")
    given = str(override.input_line)
    if override.is_sweep_override():
        raise UserError(f"{given!r} gives several values; add --multirun to run each of them")
    if override.type is not OverrideType.CHANGE:
        raise UserError(f"{given!r} adds or removes a key; only key=value is taken")
    if key in GROUPS:
        if str(override.value()) not in options(key):
            raise UserError(
                f"unknown {key} {override.value()!r}; valid: {', '.join(options(key))}"
                + (" (or give problem.path=FOLDER)" if key == "problem" else "")
            )
        return given
    if key not in (*_valid_keys(), "search.operators") and not key.startswith(_OPEN):
        raise UserError(f"unknown key {key!r}; {valid_keys(key, [*GROUPS, *_valid_keys()])}")
    return f"++{given}"  # it may add a key to a mapping


@functools.cache
def _valid_keys() -> tuple[str, ...]:
    return tuple(_keys(composed([])))


def _keys(values: Any, prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _keys(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _in_full(values: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was composed with folders in full, and what follows from this machine.

    Args:
        values: what was composed.
        given: what the command line says of it; a preset's ``SHIPPED`` pool may be missing.
    """
    values["problem"] = _full(values["problem"]["path"], "problem.path")
    if values["data"] is not None:
        values["data"] = _full(values["data"], "data", "a file or a folder, or null")
    model, pool = values["model"], values["pool"]
    if isinstance(pool["sources"], str):  # the one of a command line
        pool["sources"] = [pool["sources"]]
    if isinstance(pool["sources"], list):
        if "pool.sources" not in given and not (Path(values["problem"]) / POOL).is_dir():
            pool["sources"] = [each for each in pool["sources"] if each != SHIPPED]
        pool["sources"] = [_source(each, Path(values["problem"])) for each in pool["sources"]]
    ours = f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/brood"
    for section, key, default in (("model", "cache_dir", ours), ("cache", "folder", f"{ours}/kv")):
        given = values[section][key]
        values[section][key] = _full(default if given is None else given, f"{section}.{key}")
    if model["path"] and Path(folder := _full(model["path"], "model.path")).is_dir():
        model["path"] = folder
    if model["max_model_len"] is None:
        model["max_model_len"] = longest_context(model["path"])
    if isinstance(length := model["max_model_len"], int):  # else it is refused later
        for section, key, share in _SHARES:
            if values[section][key] is None:
                values[section][key] = length // share
    values["opentelemetry"] = _target(values["opentelemetry"])
    if values["evaluation"]["workers"] is None:
        values["evaluation"]["workers"] = max(1, len(os.sched_getaffinity(0)) // 2)
    return values


def _source(given: object, problem: Path) -> str:
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
    return str(problem / POOL)


def _target(given: object) -> object:
    """Return where spans go: a file in full, an address as it is."""
    if given is None or "://" in str(given):
        return given
    return _full(given, "opentelemetry", "a file, http://127.0.0.1:PORT, or null")


def _full(given: object, key: str, must_be: str = "a folder") -> str:
    """Return a path in full, because a run may be resumed from elsewhere."""
    try:
        if isinstance(given, str) and given:
            return str(Path(given).expanduser().absolute())
    except RuntimeError as error:  # `~somebody` who has no home here
        raise UserError(f"{key} is {given!r}, which can't be resolved: {error}") from error
    raise UserError(f"{key} is {given!r}; it must be {must_be}")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())

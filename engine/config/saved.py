"""The settings of a run in its folder: saved, read for a report, and read to go on elsewhere."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from engine.config.composing import resolve
from engine.config.overrides import parsed
from engine.config.places import full_path, target
from engine.core import UserError
from engine.documents import read_yaml
from engine.earlier import as_now
from engine.problem import KEPT, shipped
from engine.settings import RunSettings, settings_of

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
    "cache.server_pid",
    "cache.remote",
    "log",
    "prometheus",
    "opentelemetry",
)
"""What a run that goes on may be given anew: where things lie, what a machine has, who watches."""
_FOLDERS = ("problem.path", "data", "model.cache_dir", "cache.folder")


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
    given = {override.key_or_group: override.value() for override in parsed(changes)}
    for key in given:
        if key not in OF_MACHINE:
            raise UserError(
                f"a run goes on as it was configured, so {key}= can't be given with resume=; "
                f"what a machine may have elsewhere can: {', '.join(OF_MACHINE)}"
            )
    settings = _with_problem(load_run(folder), folder)
    values = dataclasses.asdict(settings)
    values["cache"]["server_pid"] = None  # by now another process may have that number
    for key, value in given.items():
        if key == "problem.path" or (value is not None and key in _FOLDERS):
            value = full_path(value, key)  # there is no run without a problem
        section, _, name = ("problem" if key == "problem.path" else key).partition(".")
        (values[section] if name else values)[name or section] = value
    values["opentelemetry"] = target(values["opentelemetry"])
    if not Path(values["problem"]).exists():
        raise UserError(
            f"the problem of {folder} is not at {values['problem']} here; give its folder as "
            "problem.path=FOLDER"
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
        raise UserError(
            f"{path} can't be read as a run's settings: {' '.join(str(error).split())}"
        ) from error


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

"""Which runs a sweep has, and the file that says so.

``sweep.yaml`` in the sweep's folder holds each run's settings as they were resolved when the sweep
began, so it goes on as it was configured, from wherever it is resumed.
"""

import dataclasses
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from engine import config
from engine.core import UserError
from engine.documents import read_json, read_yaml
from engine.durable import write_whole
from engine.paths import expanded
from engine.settings import RunSettings, settings_of

_FILE = "sweep.yaml"


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A run of a sweep.

    Attributes:
        name: of its folder in the sweep's.
        varied: the values that set it apart, by key.
        settings: the run's.
    """

    name: str
    varied: Mapping[str, str]
    settings: RunSettings

    @property
    def folder(self) -> Path:
        """The run's."""
        return Path(self.settings.runs) / self.name

    @property
    def stored_as(self) -> str:
        """Its name where a server has its events: runs of other sweeps may have folders like it."""
        return f"{Path(self.settings.runs).resolve().name}/{self.name}"

    def summary(self) -> dict[str, Any] | None:
        """Return the run's summary; None as long as it has not reached its budget."""
        try:
            found = read_json((self.folder / "summary.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and found.get("ended_by") is not None else None


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A sweep, as its command line or its file has it.

    Attributes:
        folder: in which each run has its own.
        runs: in the order in which they are run.
    """

    folder: Path
    runs: tuple[Planned, ...]

    def write(self) -> None:
        """Make the folder and its file, if they are not there.

        Raises:
            UserError: they can't be written.
        """
        path = self.folder / _FILE
        if path.exists():
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.folder} can't be written: {error}; set runs=FOLDER") from error
        runs = [dataclasses.asdict(each) for each in self.runs]
        write_whole(path, yaml.safe_dump({"runs": runs}, sort_keys=False))

    def remove_if_empty(self) -> None:
        """Remove the folder if no run of it was ever begun."""
        if [each.name for each in self.folder.iterdir()] == [_FILE]:
            (self.folder / _FILE).unlink()
            self.folder.rmdir()


def is_sweep(folder: Path) -> bool:
    """Return whether a folder is a sweep's."""
    return (folder / _FILE).is_file()


def read_sweep(folder: Path) -> Sweep:
    """Return the sweep in a folder.

    Raises:
        UserError: its file is damaged, or was written by another version.
    """
    path = folder / _FILE
    try:
        found = read_yaml(path.read_text(encoding="utf-8"))
        runs = tuple(
            Planned(
                name=str(each["name"]),
                varied={str(key): str(value) for key, value in each["varied"].items()},
                settings=dataclasses.replace(
                    settings_of(each["settings"]), runs=str(folder), name=str(each["name"])
                ),
            )
            for each in found["runs"]
        )
    except UserError as error:
        hint = "a sweep goes on with the version of Brood that began it"
        raise UserError(f"{path} can't be read: {error}; {hint}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"{path} can't be read as a sweep: {why}") from error
    if not runs:
        raise UserError(f"{path} names no run")
    return Sweep(folder=folder, runs=runs)


def plan(arguments: Sequence[str]) -> Sweep:
    """Return the sweep that a command line asks for; one that was begun before goes on.

    Raises:
        UserError: a run can't begin as it is configured, or its folder is something else's.
    """
    jobs = config.expand(arguments)
    first = config.resolve(jobs[0])
    parent = expanded(Path(first.runs), what="runs")
    folder = parent / (first.name or time.strftime("multirun-%Y%m%d-%H%M%S"))
    runs = []
    for name, job in _named(jobs).items():
        place = [f"runs={config.quoted(str(folder))}", f"name={config.quoted(name)}"]
        common = set(jobs[0]).intersection(*jobs)
        varied = dict(each.split("=", 1) for each in job if each not in common)
        settings = config.resolve([*job, *place])
        if (kind := settings.cluster.kind) != "none":
            raise UserError(
                f"cluster is {kind}, and a run of a sweep has all its islands in one process; "
                "leave cluster= away, or start each run by itself"
            )
        runs.append(Planned(name=name, varied=varied, settings=settings))
    sweep = Sweep(folder=folder, runs=tuple(runs))
    if not folder.exists() or (is_sweep(folder) and read_sweep(folder) == sweep):
        return sweep
    other = f"; it is another sweep, which resume={folder} goes on with" if is_sweep(folder) else ""
    raise UserError(f"{folder} exists; give another name={other}")


def _named(jobs: Sequence[Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the jobs by the names of their runs' folders.

    Raises:
        UserError: two are equal.
    """
    common = set(jobs[0]).intersection(*jobs)
    names = [
        "_".join(each for each in job if each not in common).replace("/", "-") or "only"
        for job in jobs
    ]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise UserError(f"{count} runs of the sweep would be named {name!r}; give a value once")
    return dict(zip(names, jobs, strict=True))

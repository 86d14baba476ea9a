"""What the last word of a command line may become.

Covers: commands, keys and values of settings, those that a command's help lists, and paths. Hydra
is not loaded: the settings' types say which keys and values there are.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from engine.cli.commands import ROOT, benchmarks, installed
from engine.cli.shells import SCRIPTS

_GROUPS = ("model", "cache", "learning", "fill", "cluster", "method")
_NOT_TYPED = ("problem", "model.name", "model.kind", "cache.kind", "search.operators")
"""Settings that follow from others, or have keys of their own."""
_PATHS = (
    "problem.path",
    "data",
    "model.path",
    "model.cache_dir",
    "cache.folder",
    "runs",
    "opentelemetry",
)


def words(line: Sequence[str]) -> list[str]:
    """Return what the last of the words after ``brood`` may become, sorted.

    A word that ends in ``=``, ``.`` or ``/`` is not whole.
    """
    *before, last = line or [""]
    if not before:
        return _beginning(last, [*installed(), "completion"])
    name, commands = before[0], installed()
    if name == "completion":
        return _beginning(last, SCRIPTS)
    if name not in commands:
        return []
    if name == "bench" and len(before) == 1:
        return _beginning(last, benchmarks())
    if name == "resume":
        return _paths(last, folders=True)
    if name in ("run", "doctor"):
        return _of_settings(last)
    command = commands[name]
    key, equals, value = last.partition("=")
    if not equals:
        return sorted([*_beginning(last, (f"{each}=" for each in command.keys)), *_paths(last)])
    if key == "problem":
        return [f"problem={each}" for each in _beginning(value, _problems())]
    if values := command.values(key):
        return [f"{key}={each}" for each in _beginning(value, values)]
    return [f"{key}={each}" for each in _paths(value)] if command.keys.get(key) else []


def _of_settings(last: str) -> list[str]:
    key, equals, value = last.partition("=")
    if equals:
        *others, value = value.split(",")  # of a sweep
        start = f"{key}=" + "".join(f"{each}," for each in others)
        found = _paths(value) if key in _PATHS else _beginning(value, _values(key))
        return [f"{start}{each}" for each in found]
    keys = [f"{each}=" for each in ("problem", "problem.path", "resume", *_GROUPS, *_keys())]
    if "." not in last:  # sections first: there are more keys than fit on a screen
        keys = [each if "." not in each else each[: each.index(".") + 1] for each in keys]
    return _beginning(last, [*keys, "--multirun", "--help"])


def _keys() -> list[str]:
    from engine.prompts import OPERATORS
    from engine.settings import RunSettings

    return [
        *(each for each, _ in _leaves(RunSettings) if each not in _NOT_TYPED),
        *(f"search.operators.{name}" for name in OPERATORS.names),
        *_policies(),
    ]


def _values(key: str) -> list[str]:
    """Return the values of a setting, where they can be listed."""
    if key == "problem":
        return _problems()
    if key in _GROUPS:
        return [path.stem for path in (ROOT / "conf" / key).glob("*.yaml")]
    if key in (policies := _policies()):
        return [*policies[key].names]
    from engine.settings import RunSettings

    hint = dict(_leaves(RunSettings)).get(key)
    kinds = [hint, *get_args(hint)]
    found = [
        str(value) for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)
    ]
    if bool in kinds:
        found += ["true", "false"]
    return [*found, *(["null"] if type(None) in kinds else [])]


def _policies() -> dict[str, Any]:
    from engine.search.cells import CELLS
    from engine.search.inspirations import INSPIRATIONS
    from engine.search.mixes import MIXES
    from engine.search.novelty import NOVELTY
    from engine.search.parents import PARENTS
    from engine.search.schedules import SCHEDULES
    from engine.search.topologies import TOPOLOGIES
    from engine.search.widths import WIDTHS

    return {
        "search.parent.policy": PARENTS,
        "search.cells.policy": CELLS,
        "search.inspirations.policy": INSPIRATIONS,
        "search.mix.policy": MIXES,
        "search.novelty.policy": NOVELTY,
        "islands.schedule.policy": SCHEDULES,
        "islands.topology.policy": TOPOLOGIES,
        "width.policy": WIDTHS,
    }


def _leaves(section: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys of a section, each with its type; a policy has none of its own."""
    hints = get_type_hints(section)
    for field in dataclasses.fields(section):
        key, hint = f"{prefix}{field.name}", hints[field.name]
        if not dataclasses.is_dataclass(hint):
            yield key, hint
        elif "policy" not in get_type_hints(hint):
            yield from _leaves(hint, f"{key}.")


def _problems() -> list[str]:
    from engine.problem import shipped

    return [*shipped()]


def _paths(start: str, *, folders: bool = False) -> list[str]:
    """Return the files and folders whose paths begin so; a folder's ends in a slash."""
    folder, _, name = start.rpartition("/")
    before = start[: len(start) - len(name)]
    try:
        where = Path(f"{folder}/" if "/" in start else ".").expanduser()
        found = [(each.name, each.is_dir()) for each in where.iterdir()]
    except (OSError, RuntimeError):  # RuntimeError: `~somebody` who has no home here
        return []
    return sorted(
        f"{before}{each}{'/' if is_folder else ''}"
        for each, is_folder in found
        if each.startswith(name)
        and (is_folder or not folders)
        and (not each.startswith(".") or name.startswith("."))
    )


def _beginning(start: str, of: Iterable[str]) -> list[str]:
    return sorted({each for each in of if each.startswith(start)})

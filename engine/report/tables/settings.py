"""In what runs differ: their settings, and groups that differ in nothing but the seed."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.report.analysis import RunRecord
from engine.report.analysis.figures import Table

_OWN = ("seed", "name", "runs", "problem")
"""Settings that tell a run from its repetitions. The problem of runs that are reported together is
the same, wherever its folder lies: a run of one that was made in Python has its own copy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Runs that differ in nothing but the seed.

    Attributes:
        label: by what they differ from the other groups, as ``key=value``; empty if there are none.
        runs: at least one.
    """

    label: str
    runs: tuple[RunRecord, ...]


def differences(runs: Sequence[RunRecord]) -> Table:
    """Return a row for each setting in which runs differ, a column for each run."""
    settings = [dict(_flat(dataclasses.asdict(run.settings))) for run in runs]
    rows = [
        {
            "setting": key,
            **{run.name: each.get(key) for run, each in zip(runs, settings, strict=True)},
        }
        for key in _differing(settings)
    ]
    return Table(title="Settings in which the runs differ", rows=rows)


def grouped_runs(runs: Sequence[RunRecord]) -> list[Group]:
    """Put runs together that differ in nothing but the seed, in the order of their first ones.

    A label names as few settings as tell the groups apart, taken in the order of the settings.
    """
    settings = [dict(_flat(dataclasses.asdict(run.settings))) for run in runs]
    keys = [key for key in _differing(settings) if key not in _OWN]
    values = [tuple(each.get(key) for key in keys) for each in settings]
    chosen = _telling(values)
    groups: dict[tuple[str | None, ...], list[RunRecord]] = {}
    for run, value in zip(runs, values, strict=True):
        groups.setdefault(value, []).append(run)
    return [
        Group(label=", ".join(f"{keys[i]}={value[i]}" for i in chosen), runs=tuple(members))
        for value, members in groups.items()
    ]


def _telling(values: Sequence[tuple[str | None, ...]]) -> list[int]:
    """Return the places of few entries that tell different tuples apart."""
    chosen: list[int] = []
    told = 1
    for place in range(len(values[0]) if values else 0):
        now = len({tuple(value[i] for i in (*chosen, place)) for value in values})
        if now > told:
            chosen.append(place)
            told = now
    return chosen


def _differing(settings: Sequence[Mapping[str, str]]) -> list[str]:
    keys = dict.fromkeys(key for each in settings for key in each)
    return [key for key in keys if len({each.get(key) for each in settings}) > 1]


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield settings as dotted keys and text."""
    for key, each in value.items():
        if isinstance(each, Mapping) and each:
            yield from _flat(each, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", each if isinstance(each, str) else json.dumps(each, default=str)

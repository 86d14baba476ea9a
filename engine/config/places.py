"""What follows from this machine: folders in full, and what a run has of a resource by default."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.core import UserError
from engine.inference import is_cpu_build
from engine.inference.weights import longest_context
from engine.paths import expanded
from engine.problem import POOL

SHIPPED = "shipped"
"""Among a pool's sources, the pool that comes with the problem."""
_SHARES = (
    ("model", "max_tokens", 8),
    ("prompts", "history_tokens", 4),
    ("prompts", "growth_tokens", 8),
)
"""Keys that may be null, and the share of ``model.max_model_len`` that they are then."""


def in_full(values: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was composed with folders in full, and what follows from this machine.

    Args:
        values: what was composed.
        given: what the command line says of it; a preset's ``SHIPPED`` pool may be missing.
    """
    values["problem"] = full_path(values["problem"]["path"], "problem.path")
    if values["data"] is not None:
        values["data"] = full_path(values["data"], "data", "a file or a folder, or null")
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
        values[section][key] = full_path(default if given is None else given, f"{section}.{key}")
    if model["path"] and Path(folder := full_path(model["path"], "model.path")).is_dir():
        model["path"] = folder
    if model["max_model_len"] is None:
        model["max_model_len"] = longest_context(model["path"])
    if isinstance(length := model["max_model_len"], int):  # else it is refused later
        for section, key, share in _SHARES:
            if values[section][key] is None:
                values[section][key] = length // share
    values["opentelemetry"] = target(values["opentelemetry"])
    if values["evaluation"]["workers"] is None:
        cores = len(os.sched_getaffinity(0))
        values["evaluation"]["workers"] = default_workers(cores, on_gpu=not is_cpu_build())
    return values


def default_workers(cores: int, *, on_gpu: bool) -> int:
    """Return how many processes run candidates by default, at least one.

    A model that decodes on the CPU is left half of the cores. One on a GPU is left a quarter, and
    no fewer than two: for its own thread, the loop and the processes that parse.
    """
    left = max(2, cores // 4) if on_gpu else cores - cores // 2
    return max(1, cores - left)


def _source(given: object, problem: Path) -> str:
    """Return a pool's folder in full; ``SHIPPED`` is that of the problem in the folder ``problem``.

    Raises:
        UserError: the problem has none.
    """
    if given != SHIPPED:
        return full_path(given, "pool.sources", "folders")
    if not (problem / POOL).is_dir():
        raise UserError(
            f"pool.sources={SHIPPED}: problem {problem.name} comes with no pool; name a folder"
        )
    return str(problem / POOL)


def target(given: object) -> object:
    """Return where spans go: a file in full, an address as it is."""
    if given is None or "://" in str(given):
        return given
    return full_path(given, "opentelemetry", "a file, http://127.0.0.1:PORT, or null")


def full_path(given: object, key: str, must_be: str = "a folder") -> str:
    """Return a path in full, because a run may be resumed from elsewhere."""
    if isinstance(given, str) and given:
        return str(expanded(Path(given), what=key).absolute())
    raise UserError(f"{key} is {given!r}; it must be {must_be}")

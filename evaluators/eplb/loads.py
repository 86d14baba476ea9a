"""The expert loads that the ``eplb`` problem plans for: read from a file, or generated.

A load history is a JSON object whose entry ``load_history`` is a list of objects, each with a
``logical_expert_load`` of shape [L][E]: how many tokens each of the E experts of each of the L
layers got since the entry before. The public file ``expert-load.json`` (Cheng et al., Barbarians
at the Gate) has that form. As in its evaluator, `WINDOW` entries in a row are added up to a
window; the last window may have fewer.

Does not cover: plans and what they are worth (``kernels.eplb``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from engine.core import UserError
from kernels.eplb import Loads

HISTORY, LOAD = "load_history", "logical_expert_load"
WINDOW = 100
"""Entries of a history between two plans."""

LAYERS, EXPERTS, WINDOWS = 58, 256, 6
_TOKENS = 2_000_000  # sent to the experts of a layer in a window
_KEPT, _SHOCK = 0.8, 0.3  # of the deviation of an expert's log popularity from its usual one


def generate_windows() -> tuple[Loads, ...]:
    """Return `WINDOWS` windows of shape (LAYERS, EXPERTS), always the same.

    The usual popularity of a layer's experts follows Zipf's law with an exponent of 0.6 to 1, in a
    random order. From window to window its logarithm drifts as an autoregressive process of first
    order; the tokens are Poisson numbers.
    """
    rng = np.random.default_rng(288)
    ranks = np.array([rng.permutation(EXPERTS) for _ in range(LAYERS)]) + 1.0
    usual = -rng.uniform(0.6, 1.0, (LAYERS, 1)) * np.log(ranks)
    deviation = np.zeros_like(usual)
    windows = []
    for _ in range(WINDOWS):
        deviation = _KEPT * deviation + rng.normal(0.0, _SHOCK, usual.shape)
        popularity = np.exp(usual + deviation)
        popularity /= popularity.sum(axis=1, keepdims=True)
        windows.append(rng.poisson(_TOKENS * popularity).astype(np.float64))
    return tuple(windows)


def read_windows(path: Path, *, slots: int) -> tuple[Loads, ...]:
    """Return the windows of the history in ``path``, each of shape (L, E), E < ``slots``.

    Raises:
        UserError: the file is not there or not such a history, or makes fewer than two windows.
    """
    entries = [_checked(entry, i, path) for i, entry in enumerate(_entries(path))]
    if len(entries) <= WINDOW:
        raise UserError(
            f"{path} has {len(entries)} entries in {HISTORY}; two windows of {WINDOW} need at "
            f"least {WINDOW + 1}, so record a longer history"
        )
    for i, entry in enumerate(entries):
        if entry.shape != entries[0].shape:
            raise UserError(
                f"{path}: {HISTORY}[{i}] has shape {entry.shape} and the first one "
                f"{entries[0].shape}; give all entries the same layers and experts"
            )
    if entries[0].shape[1] >= slots:  # with as many experts as slots, all plans are worth the same
        raise UserError(
            f"{path} has {entries[0].shape[1]} experts in a layer, and there are {slots} slots for "
            f"them; give a history of fewer experts than that"
        )
    return tuple(
        _summed(entries[start : start + WINDOW], start, path)
        for start in range(0, len(entries), WINDOW)
    )


def _entries(path: Path) -> list[Any]:
    try:
        with path.open(encoding="utf-8") as file:
            history = json.load(file, object_hook=_compact)
    except OSError as error:
        raise UserError(
            f"load history {path} can't be read ({error.strerror}); give a JSON file with {HISTORY}"
        ) from error
    except (ValueError, RecursionError) as error:  # JSON and UTF-8 errors are ValueErrors
        raise UserError(f"{path} is not valid JSON: {error}; give a file with {HISTORY}") from error
    entries = history.get(HISTORY) if isinstance(history, dict) else None
    if not isinstance(entries, list):
        raise UserError(f"{path} has no list {HISTORY}; give a file like expert-load.json")
    return entries


def _compact(parsed: dict[str, Any]) -> dict[str, Any]:
    """Turn an entry's loads into an array while the file is read: as lists, they fill gigabytes."""
    if LOAD not in parsed:
        return parsed
    try:
        load = np.asarray(parsed[LOAD])
    except (ValueError, OverflowError):  # ragged lists, huge numbers; _checked names the entry
        return {}
    return {LOAD: load.astype(np.float64)} if load.dtype.kind in "iuf" else {}


def _checked(entry: Any, index: int, path: Path) -> Loads:
    load: Loads | None = entry.get(LOAD) if isinstance(entry, dict) else None
    if (
        load is None
        or load.ndim != 2
        or load.size == 0
        or not (np.isfinite(load) & (load >= 0)).all()
    ):
        raise UserError(
            f"{path}: {HISTORY}[{index}] has no {LOAD} of finite numbers, at least 0, as equally "
            f"long lists of one number per expert, one list per layer; mend or remove that entry"
        )
    return load


def _summed(entries: list[Loads], start: int, path: Path) -> Loads:
    with np.errstate(over="ignore"):  # refused below
        window = np.sum(entries, axis=0, dtype=np.float64)
        total = float(window.sum())
    if not 0 < total < np.inf:
        raise UserError(
            f"{path}: the loads from {HISTORY}[{start}] on sum to {total}; give windows with a "
            f"finite load above 0"
        )
    return np.asarray(window, dtype=np.float64)

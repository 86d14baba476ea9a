"""The file of a timeline: what its records are, reading them in order, mending a file cut off.

The file is a row of records of 24 bytes, nothing else. Times are in ns on one axis that begins
with the run's first session; a resumed session goes on where the file ends, so the time between
two sessions is left out.

Does not cover recording (``engine.timeline``) or what the records mean for the run
(``engine.report.trace``).
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.core import UserError

TIMELINE = "timeline.bin"
"""Name of the file in a run's folder."""

MODEL = 0
"""Track of the model; evaluator n has track n + 1."""


class Kind(enum.IntEnum):
    """What a record says. The numbers stand in files."""

    SPAN = 1  # a track did ``what`` from ``start`` to ``end``, for iteration ``number`` (-1: none)
    COUNT = 2  # queue ``what`` held ``number`` entries from ``start`` on
    TRACK = 3  # this session has this track
    OPENED = 4  # a session began
    CLOSED = 5  # a session ended in good order


class Activity(enum.IntEnum):
    """What a track can do. The numbers stand in files."""

    STEP = 1  # the engine's step: prefill and decode
    AWAIT_EVALUATIONS = 2  # nothing to decode until verdicts are in
    AWAIT_PARENT = 3  # nothing to decode until a parent is chosen and its prompt composed
    EVALUATE = 4  # a candidate is run and scored


class Queue(enum.IntEnum):
    """What is counted. The numbers stand in files."""

    CHILDREN = 1  # at the model
    CANDIDATES = 2  # at the evaluators


RECORD = np.dtype(
    [
        ("start", "<i8"),
        ("end", "<i8"),
        ("number", "<i4"),
        ("track", "<u2"),
        ("kind", "u1"),
        ("what", "u1"),
    ]
)
Records = NDArray[np.void]

_BLOCK = 1 << 14  # records that are read at once
_SOUND = np.zeros((256, 256), dtype=bool)  # (kind, what)
_SOUND[Kind.SPAN, list(Activity)] = True
_SOUND[Kind.COUNT, list(Queue)] = True
_SOUND[[Kind.TRACK, Kind.OPENED, Kind.CLOSED], 0] = True


def read_timeline(path: Path) -> Iterator[Records]:
    """Yield the records of a file, in order of ``start``, in arrays of dtype `RECORD`.

    Takes what is there when the reading begins, as far as it is sound; the file may be one that is
    still written, or one that a death cut off. Memory holds some thousands of records, and those
    that were written while the longest span went on.

    Raises:
        UserError: the file can't be read.
    """
    try:
        size = path.stat().st_size // RECORD.itemsize
        # A span is written at its end, so records with later starts may stand before it: what has
        # been read is in order as far as no later block has an earlier start.
        lows = [int(block["start"].min()) for block in _blocks(path, size)]
        horizons = np.minimum.accumulate([np.iinfo(np.int64).max, *lows[:0:-1]])[::-1]
        held: Records = np.empty(0, RECORD)
        for block, horizon in zip(_blocks(path, size), horizons, strict=False):
            held = np.concatenate([held, block])
            ready = held["start"] < horizon
            due = held[ready]
            held = held[~ready]
            if len(due):
                yield due[np.argsort(due["start"], kind="stable")]
    except OSError as error:
        raise UserError(f"timeline {path} can't be read: {error.strerror}") from error


def _blocks(path: Path, size: int) -> Iterator[Records]:
    """Yield up to ``size`` records as they stand in the file, ending before one that is unsound.

    After a power cut, a file may hold anything where records were to be.
    """
    for first in range(0, size, _BLOCK):
        block = np.fromfile(
            path, RECORD, count=min(_BLOCK, size - first), offset=first * RECORD.itemsize
        )
        sound = _SOUND[block["kind"], block["what"]] & (block["start"] >= 0)
        sound &= block["end"] >= block["start"]
        broken = np.flatnonzero(~sound)
        if len(broken):
            block = block[: broken[0]]
        if len(block):
            yield block
        if len(broken):
            return


def mend(path: Path) -> int:
    """Cut off what follows the last sound record; return the time at which the next session begins.

    That is the end of the last record, in ns, and 0 if there is no file.
    """
    if not path.exists():
        return 0
    records = last = 0
    for block in _blocks(path, path.stat().st_size // RECORD.itemsize):
        records += len(block)
        last = max(last, int(block["end"].max()))
    os.truncate(path, records * RECORD.itemsize)
    return last

"""The ``sequential_recommendation`` problem: histories in, ranked lists out, next items hidden.

The paper (PACEvolve++, sections 4.1.2 and C.2) gives the data set, a history of at most 1,024
interactions, full-catalogue ranking and the metrics; the rest is settled here:

- A user's interactions are ordered by time (by video where times are equal), and repetitions of
  one interaction (same user, video and time) count once: KuaiRec has some, and a repeated last
  interaction would show the target in the history.
- The last interaction of each user is the target, whatever its watch ratio; the 1,024 before it
  are the history. Users with fewer than two interactions are left out.
- The catalogue is every video of the data, numbered from 0 by rising id, those of users and
  interactions that are left out too: else a video in no history would have to be a target. A video
  that the user has seen may be the target and may be recommended.
- A program ranks the first 100 of the catalogue (all of it, where it is smaller), not all of it.

What a program may change is what the paper's may: features, sequence mixer, summary and scores of
``initial/model.py``. ``initial/harness.py`` is fixed: the way of the data into the model, 16 epochs
of sampled softmax, and the ranking; its batches, negatives and optimizer are settled there. The
size of the model is the problem's too, and comes with the call: `PAPER` for an interaction file of
KuaiRec 2.0 (``data=FILE``), with the paper's 1,200 seconds, and `SMALL` for the generated set,
whose scores can't be compared with published ones. On one CPU core, 1,200 seconds are enough for
some 100 users of `PAPER`; for all of KuaiRec the limit has to be raised to a day. The fixed file is
no wall (``engine.syntax.blocks``): a program that trains longer wins nothing that it has not
learnt, as no target is in its process.
Does not cover the metrics (``kernels.recommendation``) and the data (``data``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.core import ArraySpec, Case, Limits, Outputs, Rejected, Stage, UserError
from kernels import recommendation
from kernels.recommendation import Items

from .data import Interactions, generate_interactions, read_interactions

MAX_HISTORY = 1024
LIST_LENGTH = 100
OUTPUT = "recommendations"


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """Of a model: the last ``length`` videos of a history, vectors of ``width``, mixing blocks."""

    length: int
    width: int
    blocks: int


SMALL = Size(length=50, width=32, blocks=1)
PAPER = Size(length=MAX_HISTORY, width=128, blocks=4)
PAPER_LIMITS = Limits(seconds=1200.0, memory_bytes=16 << 30)


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """Histories of users, one after the other, and the item that each user turned to next.

    The arrays are read-only.

    Attributes:
        items: the items of all histories, shape (n,), int64 from 0 to num_items - 1.
        times: when each was watched, Unix seconds, shape (n,), rising within a history.
        watch_ratios: how much of each was watched, shape (n,).
        starts: the history of user u is ``starts[u]:starts[u + 1]``; shape (users + 1,), int64.
        targets: the next item of each user, shape (users,). Never shown to a program.
        num_items: size of the catalogue.
        size: of the model that is trained.
    """

    items: Items
    times: NDArray[np.float64]
    watch_ratios: NDArray[np.float64]
    starts: Items
    targets: Items
    num_items: int
    size: Size

    def __post_init__(self) -> None:
        for values in (self.items, self.times, self.watch_ratios, self.starts, self.targets):
            values.flags.writeable = False

    @property
    def k(self) -> int:
        """Length of the list that a program returns for each user."""
        return min(LIST_LENGTH, self.num_items)

    def first_users(self, count: int) -> Task:
        """Return the task with its first ``count`` users alone, and the whole catalogue."""
        end = self.starts[count]
        return Task(
            items=self.items[:end],
            times=self.times[:end],
            watch_ratios=self.watch_ratios[:end],
            starts=self.starts[: count + 1],
            targets=self.targets[:count],
            num_items=self.num_items,
            size=self.size,
        )

    def case(self) -> Case:
        """Return the call that asks for the lists of all users."""
        return Case(
            name="next items",
            args=(
                self.items,
                self.times,
                self.watch_ratios,
                self.starts,
                self.num_items,
                self.k,
                self.size.length,
                self.size.width,
                self.size.blocks,
            ),
            outputs={OUTPUT: ArraySpec(shape=(self.targets.size, self.k), dtype="int64")},
        )

    def score(self, outputs: Sequence[Outputs]) -> Mapping[str, float]:
        """Return `kernels.recommendation.Metrics` and ``score``, all in [0, 1].

        The score is the mean of NDCG@10, Hit Rate@10 and MRR (PACEvolve++, section 4.1.2).

        Raises:
            Rejected: a list holds an item twice, or a number that is no item.
            ValueError: the output has not the shape that the case declares; the engine checks
                that before it scores, so this is a fault of the caller and not of the program.
        """
        (output,) = outputs
        lists = np.ascontiguousarray(output[OUTPUT], dtype=np.int64)
        if lists.shape != (self.targets.size, self.k):
            raise ValueError(
                f"Expected {OUTPUT} to have shape {(self.targets.size, self.k)} "
                f"but it had shape {lists.shape}"
            )
        self._refuse_faults(lists)
        metrics = recommendation.measure(lists, self.targets)
        score = (metrics.ndcg_10 + metrics.hit_rate_10 + metrics.mrr) / 3.0
        return {"score": score} | metrics._asdict()

    def _refuse_faults(self, lists: Items) -> None:
        user, place = recommendation.first_fault(lists, self.num_items)
        if user < 0:
            return
        item = int(lists[user, place])
        if 0 <= item < self.num_items:
            raise Rejected(f"the list of user {user} has item {item} twice, again at [{place}]")
        raise Rejected(
            f"the list of user {user} has {item} at [{place}]; items are 0 to {self.num_items - 1}"
        )


def leave_one_out(given: Interactions, *, size: Size = SMALL) -> Task:
    """Return the task that ``given`` make, as the module's docstring says; it may have no user."""
    order = np.lexsort((given.videos, given.times, given.users))
    users, videos, times = given.users[order], given.videos[order], given.times[order]
    again = (np.diff(users) == 0) & (np.diff(times) == 0) & (np.diff(videos) == 0)
    first = np.concatenate([np.ones(min(1, users.size), dtype=bool), ~again])
    order, users = order[first], users[first]
    _, begins, counts = np.unique(users, return_index=True, return_counts=True)
    # Interactions that follow in the same history: 0 for the last, which is the target.
    after = np.repeat(begins + counts, counts) - 1 - np.arange(users.size)
    kept = (after <= MAX_HISTORY) & (np.repeat(counts, counts) >= 2)
    order, is_target = order[kept], after[kept] == 0
    catalogue = np.unique(given.videos)
    items = np.searchsorted(catalogue, given.videos[order])
    lengths = np.minimum(counts[counts >= 2] - 1, MAX_HISTORY)
    return Task(
        items=items[~is_target].astype(np.int64),
        times=given.times[order][~is_target],
        watch_ratios=given.watch_ratios[order][~is_target],
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        targets=items[is_target].astype(np.int64),
        num_items=int(catalogue.size),
        size=size,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluator:
    """The problem on one task: a full stage with all users, and a screen with a quarter of them."""

    task: Task
    limits: Limits | None = None

    def cases(self) -> Sequence[Case]:
        """Return the one case."""
        return [self.task.case()]

    def score(self, outputs: Sequence[Outputs]) -> Mapping[str, float]:
        """Return the metrics of the lists; see `Task.score`."""
        return self.task.score(outputs)

    def screens(self) -> Sequence[Stage]:
        """Return one stage: the same task with the first quarter of the users."""
        fewer = self.task.first_users(-(-self.task.targets.size // 4))
        return [Stage(name="quarter", cases=(fewer.case(),), score=fewer.score)]


@cache
def _generated() -> Task:
    return leave_one_out(generate_interactions())


def with_data(path: Path | None) -> Evaluator:
    """Return the problem on the interactions in ``path``, or on generated ones where it is None.

    Raises:
        UserError: the file is missing or malformed, or nobody in it has two interactions.
    """
    if path is None:
        return Evaluator(task=_generated())
    task = leave_one_out(read_interactions(path), size=PAPER)
    if not task.targets.size:
        raise UserError(f"{path}: no user has two interactions with a timestamp; give more rows")
    return Evaluator(task=task, limits=PAPER_LIMITS)

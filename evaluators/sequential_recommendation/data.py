"""Interactions of users with videos: the reader of KuaiRec's files, and generated stand-ins.

The reader expects an interaction file of KuaiRec 2.0, ``big_matrix.csv`` (7,176 users, 10,728
videos, 12.5 million rows) or ``small_matrix.csv``, as its README describes them: comma-separated,
the first line ``user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio``.
Four columns are read, in whatever order they stand; the others are skipped:

``user_id``, ``video_id``
    integers of at least 0;
``timestamp``
    Unix time in seconds, with a fraction; a row where it is empty is skipped, for such a row has
    no place in a sequence;
``watch_ratio``
    play_duration / video_duration, at least 0 and above 1 where the video ran more than once.

The original files were not to be had where this was written: the reader has only ever been run on
generated files with this schema. It holds the whole file in memory, 32 bytes a row. In
``small_matrix.csv`` nearly every user has seen nearly every video, so there the held-out video is
nearly known from what is left over; the published scores are those of the big matrix.

Does not cover splitting into histories and targets (``evaluator``).
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.core import UserError
from evaluators.table import parse_id, parse_number, read_rows

COLUMNS = ("user_id", "video_id", "timestamp", "watch_ratio")
SEED = 20200705
"""Seed of the generated data that stand in for the original ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interactions:
    """Who watched what, when and how much of it; each array of shape (n,), in no special order.

    Attributes:
        users, videos: ids, int64.
        times: Unix times in seconds, float64.
        watch_ratios: share of the video that was played, float64.
    """

    users: NDArray[np.int64]
    videos: NDArray[np.int64]
    times: NDArray[np.float64]
    watch_ratios: NDArray[np.float64]


def read_interactions(path: Path) -> Interactions:
    """Return the interactions in ``path``, a file as the module's docstring says.

    Raises:
        UserError: the file is missing or malformed; the message names the line.
    """
    if path.is_dir():
        raise UserError(f"{path} is a folder; give the file itself, such as {path}/big_matrix.csv")
    users, videos, times, ratios = array("q"), array("q"), array("d"), array("d")
    for line, (user, video, time, ratio) in read_rows(path, COLUMNS):
        if not time:
            continue
        users.append(parse_id(user, path=path, line=line, column="user_id"))
        videos.append(parse_id(video, path=path, line=line, column="video_id"))
        times.append(parse_number(time, path=path, line=line, column="timestamp"))
        ratios.append(parse_number(ratio, path=path, line=line, column="watch_ratio"))
        if ratios[-1] < 0:
            raise UserError(f"{path}, line {line}: watch_ratio is {ratio!r}; it can't be below 0")
    return Interactions(
        users=np.asarray(users, dtype=np.int64),
        videos=np.asarray(videos, dtype=np.int64),
        times=np.asarray(times, dtype=np.float64),
        watch_ratios=np.asarray(ratios, dtype=np.float64),
    )


def generate_interactions(
    seed: int = SEED, *, users: int = 500, videos: int = 300, topics: int = 10, longest: int = 60
) -> Interactions:
    """Return made-up interactions with something in them for a sequential model to find.

    Videos belong to topics and differ in popularity (Zipf-like); each video has a sequel in its
    topic. A user has tastes. What comes next is the sequel, mostly after a video that was watched
    to its end, or a video of the same topic, or one of a topic to the user's taste; after a long
    pause always the last. Users have from a third of ``longest`` to ``longest`` interactions.
    """
    rng = np.random.default_rng(seed)
    catalogue = _Catalogue(rng, videos, topics)
    tastes = rng.dirichlet(np.full(topics, 0.3), size=users)  # (users, topics)
    time = 1.5938e9 + rng.uniform(0, 3 * 86400, users)  # July 2020, as in KuaiRec
    video = catalogue.draw(rng, _draw_rows(rng, tastes))
    watched_videos, all_times, ratios = [], [], []
    for _ in range(longest):
        liking = tastes[np.arange(users), catalogue.topics[video]]
        ratio = np.exp(rng.normal(-0.4, 0.5, users)) * (0.6 + liking)
        watched_videos.append(video)
        all_times.append(time)
        ratios.append(ratio)
        paused = rng.random(users) < 0.12
        time = time + np.where(paused, rng.exponential(36000, users), rng.exponential(30, users))
        follows_on = ~paused & (rng.random(users) < np.where(ratio > 0.8, 0.5, 0.1))
        strays = paused | (rng.random(users) < 0.4)
        topic = np.where(strays, _draw_rows(rng, tastes), catalogue.topics[video])
        video = np.where(follows_on, catalogue.sequels[video], catalogue.draw(rng, topic))
    lengths = rng.integers(longest // 3, longest, users, endpoint=True)
    kept = np.arange(longest)[:, None] < lengths  # (longest, users)
    return Interactions(
        users=np.broadcast_to(np.arange(users), kept.shape)[kept],
        videos=np.array(watched_videos)[kept],
        times=np.array(all_times)[kept],
        watch_ratios=np.array(ratios)[kept],
    )


class _Catalogue:
    """Generated videos: topic and sequel of each, and how popular each is within its topic."""

    def __init__(self, rng: np.random.Generator, videos: int, topics: int) -> None:
        self.topics = rng.permutation(np.arange(videos) % topics)
        self.sequels = np.empty(videos, dtype=np.int64)
        for topic in range(topics):
            members = np.flatnonzero(self.topics == topic)
            self.sequels[members] = np.roll(members, 1)
        popularity = 1.0 / (5.0 + rng.permutation(videos)) ** 0.8
        self._weights = np.where(self.topics == np.arange(topics)[:, None], popularity, 0.0)
        self._weights /= self._weights.sum(axis=1, keepdims=True)  # (topics, videos)

    def draw(self, rng: np.random.Generator, topic: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a video of each of ``topic``, by popularity."""
        return _draw_rows(rng, self._weights[topic])


def _draw_rows(rng: np.random.Generator, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Draw one column of each row of ``weights``, with the row's weights; shape (rows,)."""
    cumulative = np.cumsum(weights, axis=1)
    drawn = rng.random(len(weights)) * cumulative[:, -1]
    return np.asarray((cumulative <= drawn[:, None]).sum(axis=1), dtype=np.int64)

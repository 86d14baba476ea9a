"""Interactions: the file reader on generated files, the generator, and the split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from engine.core import UserError
from evaluators.sequential_recommendation.data import (
    Interactions,
    generate_interactions,
    read_interactions,
)
from evaluators.sequential_recommendation.evaluator import (
    MAX_HISTORY,
    PAPER,
    Task,
    leave_one_out,
    with_data,
)

HEADER = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio"
ROW = "14,148,4381,6067,2020-07-05 05:27:48.378,20200705,1593898068.378,0.7221032"


def write_kuairec(path: Path, given: Interactions) -> Path:
    """Write interactions with the columns of KuaiRec 2.0."""
    lines = [HEADER]
    for user, video, time, ratio in zip(
        given.users, given.videos, given.times, given.watch_ratios, strict=True
    ):
        stamp = np.datetime64(int(time * 1000), "ms").astype(str).replace("T", " ")
        date = stamp[:10].replace("-", "")
        played = int(ratio * 9000)
        lines.append(f"{user},{video},{played},9000,{stamp},{date},{float(time)!r},{ratio:.17g}")
    path.write_text("\n".join(lines) + "\n")
    return path


def interactions(*rows: tuple[int, int, float]) -> Interactions:
    """Return interactions of (user, video, time), each watched once."""
    users, videos, times = zip(*rows, strict=True)
    return Interactions(
        users=np.array(users),
        videos=np.array(videos),
        times=np.array(times, dtype=np.float64),
        watch_ratios=np.ones(len(rows)),
    )


def same(one: Task, other: Task) -> bool:
    arrays = ("items", "times", "watch_ratios", "starts", "targets")
    return one.num_items == other.num_items and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays
    )


def test_a_written_file_reads_back(tmp_path: Path) -> None:
    given = generate_interactions(3, users=20, videos=30, longest=12)
    path = write_kuairec(tmp_path / "big_matrix.csv", given)
    got = read_interactions(path)
    for name in Interactions.__dataclass_fields__:
        assert_array_equal(getattr(got, name), getattr(given, name))
    assert same(with_data(path).task, leave_one_out(given, size=PAPER))


def test_rows_without_a_timestamp_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "small_matrix.csv"
    path.write_text(f"{HEADER}\n{ROW}\n14,183,11635,6100,,,,1.907377\n")
    got = read_interactions(path)
    assert_array_equal(got.videos, [148])
    assert_array_equal(got.times, [1593898068.378])
    assert_array_equal(got.watch_ratios, [0.7221032])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEADER.replace("video_id", "item") + f"\n{ROW}", "no column 'video_id'"),
        (f"{HEADER}\n{ROW}\n{ROW.replace('14,148', 'x,148')}", "line 3: user_id is 'x'"),
        (f"{HEADER}\n{ROW.replace('14,148', '14,-1')}", "line 2: video_id is '-1'"),
        (f"{HEADER}\n{ROW.replace('1593898068.378', 'noon')}", "line 2: timestamp is 'noon'"),
        (f"{HEADER}\n{ROW.replace('0.7221032', 'nan')}", "line 2: watch_ratio is 'nan'"),
        (f"{HEADER}\n{ROW.replace('0.7221032', '-0.5')}", "line 2: watch_ratio .* below 0"),
        (f"{HEADER}\n{ROW}\n14,148,43", "line 3: 3 values in a file of 8 columns"),
        (f"{HEADER}\n{ROW}", "no user has two interactions"),
        (HEADER, "no user has two interactions"),
        ("", "no column 'user_id'"),
    ],
)
def test_malformed_files_give_one_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "big_matrix.csv"
    path.write_text(content + "\n")
    with pytest.raises(UserError, match=message) as caught:
        with_data(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_interaction_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is a folder; give .*big_matrix\.csv"):
        with_data(tmp_path)


def test_the_last_interaction_is_the_target() -> None:
    task = leave_one_out(interactions((7, 40, 3), (5, 10, 9), (7, 20, 1), (5, 30, 2), (7, 10, 2)))
    assert task.num_items == 4  # videos 10, 20, 30, 40 are items 0, 1, 2, 3
    assert_array_equal(task.starts, [0, 1, 3])  # users 5 and 7
    assert_array_equal(task.items, [2, 1, 0])
    assert_array_equal(task.times, [2, 1, 2])
    assert_array_equal(task.targets, [0, 3])


def test_a_repeated_interaction_does_not_show_the_target() -> None:
    task = leave_one_out(interactions((1, 5, 1), (1, 6, 2), (1, 6, 2), (1, 6, 2)))
    assert_array_equal(task.items, [0])
    assert_array_equal(task.targets, [1])


def test_watching_again_later_is_another_interaction() -> None:
    task = leave_one_out(interactions((1, 6, 1), (1, 6, 2)))
    assert_array_equal(task.items, [0])
    assert_array_equal(task.targets, [0])


def test_a_user_with_one_interaction_is_left_out_and_the_video_is_not() -> None:
    task = leave_one_out(interactions((1, 5, 1), (2, 6, 1), (2, 7, 2)))
    assert_array_equal(task.starts, [0, 1])
    assert_array_equal(task.items, [1])
    assert_array_equal(task.targets, [2])
    assert task.num_items == 3


def test_a_video_in_no_history_need_not_be_a_target() -> None:
    # Users 1, 2 and 3 watched 10 11 12, 10 13 and 99.
    rows = [(1, 10, 1), (1, 11, 2), (1, 12, 3), (2, 10, 1), (2, 13, 2), (3, 99, 1)]
    task = leave_one_out(interactions(*rows))
    unseen = set(range(task.num_items)) - set(task.items.tolist())
    assert unseen == {2, 3, 4}
    assert_array_equal(task.targets, [2, 3])


def test_long_histories_keep_their_end() -> None:
    rows = [(1, video, float(video)) for video in range(MAX_HISTORY + 30)]
    task = leave_one_out(interactions(*rows, (2, 5, 0), (2, 2000, 1)))
    assert_array_equal(np.diff(task.starts), [MAX_HISTORY, 1])
    assert_array_equal(task.times[:MAX_HISTORY], np.arange(29, MAX_HISTORY + 29))
    assert task.num_items == MAX_HISTORY + 31  # those cut off too, and video 2000


def test_the_order_of_the_rows_does_not_matter() -> None:
    given = generate_interactions(1, users=15, videos=20, longest=9)
    shuffled = np.random.default_rng(0).permutation(given.users.size)
    other = Interactions(
        **{name: getattr(given, name)[shuffled] for name in Interactions.__dataclass_fields__}
    )
    assert same(leave_one_out(given), leave_one_out(other))


def test_first_users_keep_their_histories_and_the_catalogue() -> None:
    task = leave_one_out(generate_interactions(1, users=15, videos=20, longest=9))
    fewer = task.first_users(4)
    assert_array_equal(fewer.targets, task.targets[:4])
    assert_array_equal(fewer.starts, task.starts[:5])
    assert fewer.items.size == fewer.times.size == fewer.watch_ratios.size == fewer.starts[-1]
    assert fewer.num_items == task.num_items


def test_the_generator_is_seeded_and_leaves_the_global_one_alone() -> None:
    np.random.seed(3)
    expected = np.random.rand()
    np.random.seed(3)
    one, again = (generate_interactions(1, users=15, videos=20, longest=9) for _ in range(2))
    assert np.random.rand() == expected
    other = generate_interactions(2, users=15, videos=20, longest=9)
    assert same(leave_one_out(one), leave_one_out(again))
    assert not same(leave_one_out(one), leave_one_out(other))


def test_generated_interactions_look_like_the_real_ones() -> None:
    given = generate_interactions()
    counts = np.bincount(given.users)
    assert (counts.size, counts.min(), counts.max()) == (500, 20, 60)
    assert given.videos.min() >= 0 and given.videos.max() < 300
    assert np.all(given.watch_ratios > 0) and 0.5 < np.median(given.watch_ratios) < 1
    assert np.ptp(given.times) < 62 * 86400  # two months, as in KuaiRec

"""The expert loads: the generated ones, and histories that are read, broken ones included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.core import UserError
from evaluators.eplb.loads import EXPERTS, LAYERS, WINDOWS, generate_windows, read_windows


def history(entries: list[Any]) -> dict[str, Any]:
    return {"load_history": [{"logical_expert_load": load} for load in entries]}


def write(path: Path, content: Any) -> Path:
    file = path / "expert-load.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def test_generated_windows_are_the_same_each_time() -> None:
    first, second = generate_windows(), generate_windows()
    assert len(first) == WINDOWS
    for a, b in zip(first, second, strict=True):
        assert a.shape == (LAYERS, EXPERTS)
        assert a.dtype == np.float64
        assert (a == b).all()
        assert (a >= 0).all()
        assert (a == np.floor(a)).all()


def test_generated_loads_are_uneven_and_drift() -> None:
    windows = generate_windows()
    first = np.sort(windows[0], axis=1)[:, ::-1] / windows[0].sum(axis=1, keepdims=True)
    assert (first[:, 0] > 5 / EXPERTS).all()  # Zipf: the head is far above the mean
    next_ = [
        np.corrcoef(np.log1p(a), np.log1p(b))[0, 1]
        for a, b in zip(windows[0], windows[1], strict=True)
    ]
    last = [
        np.corrcoef(np.log1p(a), np.log1p(b))[0, 1]
        for a, b in zip(windows[0], windows[-1], strict=True)
    ]
    assert 0.8 < np.mean(next_) < 0.99
    assert np.mean(last) < np.mean(next_) - 0.02


def test_a_history_is_summed_in_windows_of_100(tmp_path: Path) -> None:
    entries = [[[i, 1, 0], [2, 2, i]] for i in range(250)]
    content = history(entries) | {"note": "ignored"}
    content["load_history"][7]["physical_expert_load"] = [[0]]
    windows = read_windows(write(tmp_path, content), slots=4)
    assert [window.tolist() for window in windows] == [
        [[4950, 100, 0], [200, 200, 4950]],
        [[14950, 100, 0], [200, 200, 14950]],
        [[11225, 50, 0], [100, 100, 11225]],  # 200 .. 249: the last window is shorter
    ]


def test_a_second_window_of_one_entry_is_enough(tmp_path: Path) -> None:
    file = write(tmp_path, history([[[1.5, 2]]] * 101))
    windows = read_windows(file, slots=288)
    assert [window.tolist() for window in windows] == [[[150, 200]], [[1.5, 2]]]


good = [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("[]", "has no list load_history"),
        ("{}", "has no list load_history"),
        ({"load_history": {"0": good}}, "has no list load_history"),
        (history([]), "has 0 entries"),
        (history([good] * 100), "has 100 entries in load_history; two windows of 100"),
        ({"load_history": [good] * 101}, r"load_history\[0\] has no logical_expert_load"),
        (history([good] * 100 + [None]), r"load_history\[100\] has no"),
        (history([good] * 100 + [[1, 2]]), r"load_history\[100\] has no"),
        (history([good] * 100 + [[[1, 2], [3]]]), r"load_history\[100\] has no"),
        (history([good] * 100 + [[["1", "2"]]]), r"load_history\[100\] has no"),
        (history([good] * 100 + [[[True, False]]]), r"load_history\[100\] has no"),
        (history([good] * 100 + [[[None, 1]]]), r"load_history\[100\] has no"),
        (history([good] * 100 + [[[10**400, 1.5]]]), r"load_history\[100\] has no"),
        (history([good] * 100 + [[[], []]]), r"load_history\[100\] has no"),
        (history([good] * 100 + [[[1, -1], [1, 1]]]), r"load_history\[100\] has no"),
        (history([good] * 100 + [[[1, float("nan")]]]), r"load_history\[100\] has no"),
        (history([good] * 100 + [[[1, float("inf")]]]), r"load_history\[100\] has no"),
        (history([good] * 100 + [[[1, 2]]]), r"load_history\[100\] has shape \(1, 2\)"),
        (history([[[1, 2, 3]]] * 101), "has 3 experts in a layer, and there are 3 slots"),
        (history([good] * 100 + [[[0, 0], [0, 0]]]), r"from load_history\[100\] on sum to 0"),
        (history([[[1e308, 0]]] * 101), r"from load_history\[0\] on sum to inf"),
    ],
)
def test_a_broken_history_is_refused(tmp_path: Path, content: Any, message: str) -> None:
    file = write(tmp_path, content)
    with pytest.raises(UserError, match=message) as caught:
        read_windows(file, slots=3)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"can't be read \(No such file"):
        read_windows(tmp_path / "missing.json", slots=3)
    with pytest.raises(UserError, match=r"can't be read \(Is a directory"):
        read_windows(tmp_path, slots=3)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "expert-load.json"
    file.write_bytes(b"\x80\x00")
    with pytest.raises(UserError, match="is not valid JSON"):
        read_windows(file, slots=3)

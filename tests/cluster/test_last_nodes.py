"""Where islands were: kept for a resumed run, and never in its way."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cluster.last_nodes import LastNodes


def test_a_resumed_run_knows_where_its_islands_were(tmp_path: Path) -> None:
    nodes = LastNodes(tmp_path)
    assert nodes.get(0) == ""
    nodes.put(0, "a")
    nodes.put(1, "b")
    nodes.put(0, "c")
    resumed = LastNodes(tmp_path)
    assert (resumed.get(0), resumed.get(1), resumed.get(2)) == ("c", "b", "")


def test_what_can_not_be_written_is_in_nobodys_way(tmp_path: Path) -> None:
    nodes = LastNodes(tmp_path / "gone")
    nodes.put(0, "a")
    assert nodes.get(0) == "a"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', "null", "\0"])
def test_what_can_not_be_read_is_as_if_it_were_not_there(tmp_path: Path, text: str) -> None:
    (tmp_path / "machines.json").write_text(text)
    nodes = LastNodes(tmp_path)
    assert nodes.get(0) == ""
    nodes.put(0, "a")
    assert LastNodes(tmp_path).get(0) == "a"

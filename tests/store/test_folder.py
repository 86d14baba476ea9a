"""The folder of a run appears whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.core import INITIAL, Evaluation, UserError
from engine.store import Event, EventLog, Session, Verdict, create_run

EVENTS: list[Event] = [
    Session(number=0, engine="0", fingerprint="f"),
    Verdict(candidate=INITIAL, evaluation=Evaluation(score=1.0, failure=None), program="x = 1\n"),
]


def write_config(path: Path) -> None:
    path.write_text("seed: 0\n")


def test_a_run_is_made_with_its_settings_and_its_first_events(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "where" / "ünï [x]"
    create_run(folder, write_config=write_config, events=EVENTS)
    assert (folder / "config.yaml").read_text() == "seed: 0\n"
    assert sorted(path.name for path in folder.iterdir()) == ["config.yaml", "run.db"]
    assert folder.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    with EventLog(folder) as log:
        assert [recorded.event for recorded in log.events()] == EVENTS


def fails_to_write(path: Path) -> None:
    path.write_text("half of")
    raise OSError("disk full")


def has_a_bug(path: Path) -> None:
    path.write_text("half of")
    raise ZeroDivisionError


def write_twice() -> Iterator[Event]:
    yield from EVENTS
    yield EVENTS[0]


@pytest.mark.parametrize(
    ("write", "events", "error"),
    [
        (fails_to_write, lambda: iter(EVENTS), UserError),
        (has_a_bug, lambda: iter(EVENTS), ZeroDivisionError),
        (write_config, write_twice, ValueError),
    ],
)
def test_nothing_is_left_of_a_run_that_could_not_be_made(
    tmp_path: Path,
    write: Callable[[Path], None],
    events: Callable[[], Iterator[Event]],
    error: type[Exception],
) -> None:
    with pytest.raises(error):
        create_run(tmp_path / "run", write_config=write, events=events())
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    create_run(tmp_path / "run", write_config=write_config, events=EVENTS)
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(UserError, match="can't be made"):
        create_run(tmp_path / "run", write_config=write_config, events=EVENTS[:1])
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_place_that_cannot_hold_a_run_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"can't be written: .*; set runs=FOLDER"):
        create_run(tmp_path / "file" / "run", write_config=write_config, events=EVENTS)
    with pytest.raises(UserError, match="can't be made"):
        create_run(tmp_path / "file", write_config=write_config, events=EVENTS)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    with pytest.raises(UserError, match="File name too long"):
        create_run(tmp_path / ("x" * 256), write_config=write_config, events=EVENTS)

"""Steering a run: requests are taken in order, broken ones do nothing, and the log keeps hints."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command import wait_until

from engine import Run
from engine.core import UserError
from engine.steering import MOST_HINT, Request, Steering, checked_hint, is_paused, leave
from engine.store import Child, Hint, is_held, read_log

QUICK: dict[str, Any] = {
    "model": "mutation",
    "evaluation": {"workers": 1},
    "budget": {"candidates": 100_000, "seconds": 600},
    "islands": {"count": 1},
}


def left(folder: Path) -> list[str]:
    return sorted(each.name for each in (folder / "steering").iterdir())


def asked(folder: Path) -> list[str]:
    """Return what a new session's steering takes up of what is left for it."""
    steering = Steering()
    steering.folder = folder  # without discarding what is there
    return steering.hints()


@contextmanager
def going_on(tmp_path: Path) -> Iterator[tuple[Run, threading.Thread]]:
    with Run.of("signal", runs=tmp_path, name="it", **QUICK) as run:
        thread = threading.Thread(target=run.evolve)
        thread.start()
        try:
            wait_until(lambda: len(run.history.verdicts) > 3)
            yield run, thread
        finally:
            run.steering.is_stopped = True
            thread.join()


def stays(value: Callable[[], object], *, seconds: float = 0.6) -> bool:
    before = value()
    time.sleep(seconds)
    return value() == before


def test_requests_are_taken_in_their_order_and_removed(tmp_path: Path) -> None:
    for number in range(12):
        leave(tmp_path, Request(kind="hint", text=str(number)))
    assert left(tmp_path) == [f"{number:06}.json" for number in range(12)]
    assert asked(tmp_path) == [str(number) for number in range(12)]
    assert left(tmp_path) == []


def test_many_may_ask_at_once_and_none_is_lost(tmp_path: Path) -> None:
    def ask(name: int) -> None:
        for number in range(10):
            leave(tmp_path, Request(kind="hint", text=f"{name} {number}"))

    threads = [threading.Thread(target=ask, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = asked(tmp_path)
    assert len({*found}) == 40
    for name in range(4):
        assert [each for each in found if each[0] == str(name)] == [
            f"{name} {n}" for n in range(10)
        ]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[" * 50_000,
        b"null",
        b'{"kind": "rm", "text": ""}',
        b'{"kind": ["stop"], "text": ""}',
        b'{"kind": "stop"}',
        b'{"kind": "hint", "text": 1}',
        b'{"kind": "hint", "text": "a\\u001b[2J"}',
        b'{"kind": "hint", "text": "\\ud800"}',
        b'{"kind": "hint", "text": "' + b"x" * 2001 + b'"}',
        b'{"kind": "stop", "text": "' + b" " * 70_000 + b'"}',
        b"\xff\xfe\x00",
    ],
)
def test_a_broken_request_is_told_once_and_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    (tmp_path / "steering").mkdir()
    (tmp_path / "steering" / "000000.json").write_bytes(content)
    leave(tmp_path, Request(kind="hint", text="after"))
    with caplog.at_level(logging.WARNING):
        assert asked(tmp_path) == ["after"]
    assert len(caplog.records) == 1 and "000000.json" in caplog.text
    assert left(tmp_path) == []


def test_what_is_no_plain_file_is_removed_unread(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "steering"
    (folder / "000000.json" / "deep").mkdir(parents=True)
    os.mkfifo(folder / "000001.json")
    secret = tmp_path / "secret.json"
    secret.write_bytes(Request(kind="hint", text="elsewhere").encoded())
    (folder / "000002.json").symlink_to(secret)
    (folder / "notes.txt").write_text("mine")
    with caplog.at_level(logging.WARNING):
        assert asked(tmp_path) == []
    assert len(caplog.records) == 3
    assert left(tmp_path) == ["notes.txt"] and secret.exists()


def test_what_was_asked_of_an_earlier_session_is_not_done(tmp_path: Path) -> None:
    leave(tmp_path, Request(kind="stop"))
    (tmp_path / "steering" / "paused").touch()
    steering = Steering(folder=tmp_path)
    assert steering.hints() == [] and not steering.is_stopped
    assert left(tmp_path) == []


@pytest.mark.parametrize("text", ["a\x00b", "a\x1bb", "a\u202eb", "a\u2028b", "\ue000", "\ud800"])
def test_a_hint_holds_nothing_that_cannot_be_seen(text: str) -> None:
    with pytest.raises(UserError, match=r"U\+"):
        checked_hint(text)


def test_a_hint_is_short_and_its_lines_end_alike() -> None:
    assert checked_hint("  one\r\n\ttwo é 漢 \n") == "one\n\ttwo é 漢"
    assert checked_hint(" \n ") == ""
    assert len(checked_hint("x" * MOST_HINT)) == MOST_HINT
    with pytest.raises(UserError, match="2,001 characters"):
        checked_hint("x" * (MOST_HINT + 1))


def test_a_run_is_paused_and_goes_on_and_the_pause_does_not_count(tmp_path: Path) -> None:
    with going_on(tmp_path) as (run, thread):
        leave(run.folder, Request(kind="pause"))
        wait_until(lambda: is_paused(run.folder))
        wait_until(lambda: not run.history.pending and stays(lambda: run.history.events))
        assert thread.is_alive() and is_held(run.folder)
        began, before = time.monotonic(), run.history.wall_seconds
        time.sleep(6.0)
        leave(run.folder, Request(kind="hint", text="median"))
        wait_until(lambda: len(run.history.hints) == 1)  # taken up though it stands
        paused = time.monotonic() - began
        events = run.history.events
        leave(run.folder, Request(kind="resume"))
        wait_until(lambda: run.history.events > events + 5)
        passed = time.monotonic() - began
        # The turns between its waits count, and a busy machine makes them long.
        assert run.history.wall_seconds - before < passed - 0.4 * paused
        assert not is_paused(run.folder)
    assert left(run.folder) == [] and not is_held(run.folder)


def test_a_stop_ends_the_run_in_good_order_and_it_goes_on_later(tmp_path: Path) -> None:
    with going_on(tmp_path) as (run, thread):
        leave(run.folder, Request(kind="hint", text="one"))
        leave(run.folder, Request(kind="pause"))
        leave(run.folder, Request(kind="stop"))
        leave(run.folder, Request(kind="hint", text="two"))
        thread.join(60)
        assert not thread.is_alive() and not run.is_over
    leave(run.folder, Request(kind="stop"))
    events = [each.event for each in read_log(run.folder)]
    assert [each for each in events if isinstance(each, Hint)] == [
        Hint(number=0, text="one"),
        Hint(number=1, text="two"),
    ]
    with Run.resume(run.folder) as again:
        told = iter(again.events())
        for event in told:
            if isinstance(event, Child):
                break
        assert not again.steering.is_stopped and len(again.history.hints) == 2
    assert left(run.folder) == []

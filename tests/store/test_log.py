"""The event log: durable, nothing twice, one process at a time, and no other file is taken."""

from __future__ import annotations

import contextlib
import math
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlalchemy.event import listen, remove

from engine.core import (
    INITIAL,
    Advice,
    Consultation,
    Evaluation,
    Failure,
    Question,
    Refusal,
    UserError,
)
from engine.store import (
    Call,
    Child,
    Event,
    EventLog,
    Session,
    Verdict,
    create_run,
    read_event,
    read_log,
)
from engine.syntax import read

EMPTIED = "DROP TABLE events"
SESSION = Session(number=0, engine="0", fingerprint="f")
FIRST = Verdict(
    candidate=INITIAL, evaluation=Evaluation(score=0.1 + 0.2, failure=None), program="x = '½'\n"
)


def child(name: str, refusal: Refusal | None = None) -> Child:
    iteration, index = name.split(".")
    return Child(
        id=name,
        iteration=int(iteration),
        index=int(index),
        parent=INITIAL,
        operator="infill",
        completion="\u2028 \U0001f600 \0 '\"",
        completion_ids=tuple(range(3)),
        finish_reason="stop",
        program=read(f"x = {name}\n"),
        refusal=refusal,
        prompt_tokens=10,
        cached_prompt_tokens=9,
        llm_seconds=0.1 + 0.2,
    )


def made(folder: Path, *, url: str | None = None) -> Path:
    create_run(folder, write_config=lambda path: path.touch(), events=[SESSION, FIRST], url=url)
    return folder


@pytest.fixture
def folder(tmp_path: Path, url: str | None) -> Path:
    return made(tmp_path / "runs" / "one", url=url)


@pytest.fixture
def of_file(tmp_path: Path) -> Path:
    return made(tmp_path / "runs" / "one")


def events(folder: Path) -> list[Event]:
    with EventLog(folder) as log:
        return [recorded.event for recorded in log.events()]


def test_what_is_appended_is_read_back_in_order(folder: Path) -> None:
    call = Call(
        iteration=0,
        island=3,
        parent=INITIAL,
        rule="elite",
        operator="diff",
        k=2,
        known=2,
        guessed=True,
        prompt="ünï\n",
        prompt_tokens=2,
        temperatures=(0.1 + 0.2, 1 / 3),
        seeds=(2**63 - 1, 0),
    )
    failed = Verdict(
        candidate="0.1", evaluation=Evaluation(score=None, failure=Failure.TIMEOUT, message="late")
    )
    later: list[Event] = [call, child("0.1"), child("0.0", Refusal.DUPLICATE), failed]
    with EventLog(folder, session=0) as log:
        written = [log.append(event) for event in later]
        log.commit()
        assert [each.event for each in written] == later
        read = list(log.events())
    assert [each.event for each in read] == [SESSION, FIRST, *later]
    assert read[2:] == written  # the seconds too, to the last digit
    assert [each.elapsed for each in read] == sorted(each.elapsed for each in read)
    assert events(folder) == [SESSION, FIRST, *later]


def test_sessions_are_counted_and_each_has_its_own_clock(folder: Path) -> None:
    with EventLog(folder) as log:
        assert log.session == 1
        time.sleep(0.05)
        before = time.monotonic()
        log.append(Session(number=1, engine="0", fingerprint="f"))
        elapsed = log.append(child("0.0")).elapsed  # from the session's event on
        assert elapsed <= time.monotonic() - before
        log.commit()
    with EventLog(folder) as log:
        assert log.session == 2
        assert [recorded.session for recorded in log.events()] == [0, 0, 1, 1]
    with EventLog(folder) as log:
        assert log.session == 2  # the last one wrote nothing


def test_what_was_not_committed_is_gone_when_the_log_is_closed(folder: Path) -> None:
    with EventLog(folder) as log:
        log.append(child("0.0"))
        log.commit()
        log.commit()  # nothing is left to be
        log.append(child("0.1"))
        log.append(child("0.2"))
    assert events(folder) == [SESSION, FIRST, child("0.0")]


def test_nothing_is_recorded_twice(folder: Path) -> None:
    with EventLog(folder) as log:
        log.append(child("0.0"))
        log.commit()
        for event in (SESSION, FIRST, child("0.0"), child("0.0", Refusal.BUDGET)):
            log.append(child("0.1"))
            log.append(event)
            with pytest.raises(ValueError, match="is recorded already"):
                log.commit()
        log.append(
            Verdict(candidate="0.0", evaluation=Evaluation(score=1.0, failure=None))
        )  # another kind
        log.commit()
    assert len(events(folder)) == 4  # and none of a transaction that holds one twice


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_could_not_be_read_back_is_not_taken_and_the_rest_is(
    folder: Path, value: float
) -> None:
    asked = Consultation(
        question=Question.IDEAS,
        answer="a",
        answer_ids=(1, 2),
        finish_reason="stop",
        logprobs=(-0.5, value),
        prompt_tokens=1,
        cached_prompt_tokens=0,
        llm_seconds=0.1,
        temperature=1.0,
        shared=0,
    )
    advice = Advice(child="0.1", idea=None, experiment="", consultations=(asked,))
    odd: list[Event] = [replace(child("0.1"), logprobs=(-0.5, value, -0.25)), advice]
    with EventLog(folder) as log:
        log.append(child("0.0"))
        for event in odd:
            with pytest.raises(ValueError, match=f"NaN or infinity, and the {event.KIND} has one"):
                log.append(event)
        log.commit()
    assert events(folder) == [SESSION, FIRST, child("0.0")]


WRITER = """
import sys
from pathlib import Path
from engine.core import INITIAL, Evaluation
from engine.store import EventLog, Verdict
from engine.syntax import read
with EventLog(Path(sys.argv[1])) as log:
    for number in range(int(sys.argv[2]), 10**9):
        evaluation = Evaluation(score=number / 7, failure=None)
        log.append(Verdict(candidate=f"{number}.0", evaluation=evaluation))
        if number % 3 == 2:
            log.commit()
            print(number + 1, flush=True)
"""


def test_what_was_committed_before_a_kill_is_there_and_the_run_is_free_again(folder: Path) -> None:
    before, written = len(events(folder)), 0
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(written)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(30)]
        assert all(lines)
        with pytest.raises(UserError, match="another process works on"):
            EventLog(folder)
        process.send_signal(signal.SIGKILL)
        told = int([*lines, *process.stdout][-1])  # there may be no more of them
        assert process.wait() == -signal.SIGKILL
        kept = events(folder)[before:]
        # One more transaction may have been written and not told, but no part of one.
        assert len(kept) in (told, told + 3)
        written = len(kept)
        for number, event in enumerate(kept):
            assert isinstance(event, Verdict)
            assert (event.candidate, event.score) == (f"{number}.0", number / 7)


def test_a_second_log_of_the_same_run_is_refused_until_the_first_is_closed(folder: Path) -> None:
    with EventLog(folder):
        with pytest.raises(UserError, match="another process works on"):
            EventLog(folder)
        code = "import pathlib, sys, engine.store as s; s.EventLog(pathlib.Path(sys.argv[1]))"
        command = [sys.executable, "-c", code, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode != 0 and "another process works on" in done.stderr
    with EventLog(folder) as log:
        assert len(list(log.events())) == 2


def test_a_command_that_the_run_started_does_not_keep_it_locked(folder: Path) -> None:
    with EventLog(folder):
        process = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with EventLog(folder) as log:
            assert log.session == 1
    finally:
        process.kill()
        process.wait()


def open_below(folder: Path) -> list[str]:
    """Files in ``folder`` that this process holds open; what other tests hold does not count."""
    held = []
    for fd in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the listing's own descriptor
            held.append(str(fd.readlink()))
    return [name for name in held if name.startswith(str(folder))]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.unlink(), "is not a run: it has no run.db"),
        (lambda path: path.write_bytes(b""), "run.db is not the log of a run"),
        (lambda path: path.write_bytes(b"nonsense " * 1000), "run.db is not the log of a run"),
        (lambda path: path.write_bytes(path.read_bytes()[:3000]), "run.db"),
        (
            lambda path: sql(path, "PRAGMA user_version = 5"),
            "has schema 5, and this version of Brood reads none below 6",
        ),
        (lambda path: sql(path, "PRAGMA application_id = 7"), "run.db is not the log of a run"),
        (lambda path: sql(path, EMPTIED), "not the log of a run"),
    ],
)
def test_what_is_not_a_log_is_refused_and_left_alone(
    of_file: Path, damage: object, words: str
) -> None:
    folder, path = of_file, of_file / "run.db"
    assert callable(damage)
    damage(path)
    before = path.read_bytes() if path.exists() else None
    for _ in range(2):  # the second time, to see that the lock was let go
        with pytest.raises(UserError, match=words) as refused:
            EventLog(folder)
        assert "\n" not in str(refused.value)
    assert (path.read_bytes() if path.exists() else None) == before
    assert open_below(folder) == []


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    sql(tmp_path / "run.db", "CREATE TABLE events (a)")
    with pytest.raises(UserError, match=r"run\.db is not the log of a run"):
        EventLog(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET body = '{' WHERE seq = 2",
        "UPDATE events SET body = '[]' WHERE seq = 2",
        "UPDATE events SET body = '{}' WHERE seq = 2",
        "UPDATE events SET kind = 'other' WHERE seq = 2",
        "UPDATE events SET session = 'first' WHERE seq = 2",
        "UPDATE events SET elapsed = 'late' WHERE seq = 2",
        "UPDATE events SET elapsed = x'00' WHERE seq = 2",
    ],
)
def test_a_damaged_event_is_reported_with_the_file(of_file: Path, change: str) -> None:
    sql(of_file / "run.db", change)
    with pytest.raises(UserError, match=r"run\.db is damaged: "), EventLog(of_file) as log:
        list(log.events())
    with pytest.raises(UserError, match=r"run\.db is damaged: "):
        list(read_log(of_file))


def test_what_sqlite_says_of_a_file_may_be_no_text(of_file: Path) -> None:
    sql(of_file / "run.db", "PRAGMA journal_mode=DELETE")
    data = (of_file / "run.db").read_bytes()
    (of_file / "run.db").write_bytes(data.replace(b"CREATE TABLE", b"CREATE\xf3 TABLE"))
    with pytest.raises(UserError, match=r"run\.db is (damaged|not the log of a run): "):
        list(read_log(of_file))


def sql(path: Path, statements: str) -> None:
    db = sqlite3.connect(path)
    db.executescript(statements)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def test_a_folder_that_cannot_be_written_is_refused(folder: Path) -> None:
    (folder / "run.lock").mkdir()
    with pytest.raises(UserError, match="can't be written"):
        EventLog(folder)


def test_a_log_is_read_while_another_process_writes_it_and_left_as_it_was(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert [each.event for each in read_log(folder)] == [SESSION, FIRST]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    with EventLog(folder) as log:
        written = log.append(child("0.0"))
        assert [each.event for each in read_log(folder)] == [SESSION, FIRST]  # not yet
        log.commit()
        *_, last = read_log(folder)
        assert last == written
        reading = read_log(folder)
        next(reading)
        log.append(child("0.1"))
        log.commit()
        assert sum(1 for _ in reading) == 2  # as it was when the reading began


def test_what_is_no_log_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a run"):
        next(read_log(tmp_path))
    (tmp_path / "run.db").write_bytes(b"")
    with pytest.raises(UserError, match="is not the log of a run"):
        next(read_log(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["run.db"]


def test_a_long_log_is_opened_and_asked_for_an_event_in_as_few_steps_as_a_short_one(
    of_file: Path,
) -> None:
    def look() -> None:
        with EventLog(of_file):
            pass
        assert read_event(of_file, Child, "0.1") == child("0.1")
        assert read_event(of_file, Verdict, "0.1") is None

    with EventLog(of_file) as log:
        for index in range(10):
            log.append(child(f"0.{index}"))
        log.commit()
    before = steps_of(look)
    with EventLog(of_file) as log:
        for index in range(10, 3000):
            log.append(child(f"0.{index}"))
        log.commit()
    assert steps_of(look) < 2 * before < 3000  # at least one for each row that is looked at


def steps_of(action: Callable[[], None]) -> int:
    """Return how many steps SQLite's machine takes for something."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    def watch(connection: sqlite3.Connection, record: object) -> None:
        connection.set_progress_handler(count, 1)

    listen(Engine, "connect", watch)
    try:
        action()
    finally:
        remove(Engine, "connect", watch)
    return steps

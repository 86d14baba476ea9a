"""Deaths of real processes, and a disk that is full, at the statements of a transaction."""

from __future__ import annotations

import os
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from fault_lists import Fate, Kind
from sqlalchemy import Engine, event

Send = Callable[[object], None]
_GONE = 60.0  # seconds after which a process that was to end has not


def dies_here() -> NoReturn:
    """End this process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("the process lives on")


def are_gone(processes: Sequence[int]) -> bool:
    """Wait until none of some processes is there; return whether that came to be."""
    deadline = time.perf_counter() + _GONE
    while any(Path(f"/proc/{each}").exists() for each in processes):
        if time.perf_counter() > deadline:
            return False
        time.sleep(0.01)
    return True


def in_a_process(work: Callable[[Send], None], *, take: Callable[[Any], None]) -> bool:
    """Do some work in a process of its own; return whether it lived to the end of it.

    Args:
        work: is given what sends a value to this process.
        take: is given the values, also those that were sent right before the death.
    """
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        _work_and_exit(work, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as values:
        while True:
            try:
                value = pickle.load(values)
            except (EOFError, pickle.UnpicklingError):  # a thread died while it sent something
                break
            take(value)
    _, status = os.waitpid(process, 0)
    assert status in (0, signal.SIGKILL), f"the process failed: {status}"
    return status == 0


def _work_and_exit(work: Callable[[Send], None], writer: int) -> NoReturn:
    """Work, and leave out all that the test's process does at its end."""
    code = 1
    try:
        work(lambda value: _write(writer, pickle.dumps(value)))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _write(writer: int, content: bytes) -> None:
    while content:
        content = content[os.write(writer, content) :]


@contextmanager
def of_the_disk(fate: Fate) -> Iterator[None]:
    """Let befall a run what happens within a transaction."""

    def before(_: object, cursor: Any, statement: str, *rest: object) -> None:
        if not statement.startswith("INSERT"):
            return
        if fate.befalls(Kind.OPEN):
            dies_here()
        if fate.befalls(Kind.FULL):
            cursor.connection.execute("PRAGMA max_page_count=1")  # no more than there are

    def behind(_: object, cursor: object, statement: str, *rest: object) -> None:
        if statement.startswith("INSERT") and fate.befalls(Kind.WRITTEN):
            dies_here()

    event.listen(Engine, "before_cursor_execute", before)
    event.listen(Engine, "after_cursor_execute", behind)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", before)
        event.remove(Engine, "after_cursor_execute", behind)

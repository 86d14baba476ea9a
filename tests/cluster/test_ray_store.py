"""Workers whose logs a PostgreSQL server has, which goes away and forgets."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from disturbed import ARGUMENTS, BUDGET, ISLANDS, begun, finished, texts, wait_for, workers
from servers import Server

pytestmark = pytest.mark.slow
AWAY = 30.0  # seconds


@pytest.fixture
def forgetful(server: Server) -> Iterator[Server]:
    """A server that says that a write is done before it is on disk."""
    server.sql("ALTER ROLE brood SET synchronous_commit = off")
    yield server
    server.sql("ALTER ROLE brood RESET synchronous_commit")


def test_a_server_that_is_killed_and_forgets_changes_nothing(
    tmp_path: Path, forgetful: Server
) -> None:
    plain = finished(begun(*ARGUMENTS, f"runs={tmp_path / 'plain'}", "cluster.workers=1"))
    assert f"{BUDGET} candidates evaluated" in plain
    store = f"store={forgetful.url}"
    process = begun(*ARGUMENTS, f"runs={tmp_path}", "cluster.workers=3", store)
    folder = tmp_path / "run"
    wait_for(process, folder, 20)
    forgetful.kill()
    time.sleep(AWAY)
    assert process.poll() is None
    forgetful.start()
    wait_for(process, folder, 30)
    os.kill(workers(process.pid)[0], signal.SIGKILL)  # and a worker dies besides
    out = finished(process)
    assert f"{BUDGET} candidates evaluated" in out, out
    for number in range(ISLANDS):
        assert texts(folder, number) == texts(tmp_path / "plain" / "run", number)

"""The places of a run's events: a file, and a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from servers import Server, installed, running


@pytest.fixture(scope="session")
def one_server() -> Iterator[Server]:
    """A server that runs; the tests of a process share it."""
    programs = installed()
    if programs is None:
        pytest.skip("the server of PostgreSQL is not installed (Debian: postgresql)")
    with running(programs) as server:
        yield server


@pytest.fixture
def server(one_server: Server) -> Iterator[Server]:
    """A server that runs, without a run."""
    yield one_server
    one_server.drop_all()


@pytest.fixture(params=["file", "server"])
def url(request: pytest.FixtureRequest) -> str | None:
    """Where a run's events are to be: None for a file in its folder."""
    if request.param == "file":
        return None
    server: Server = request.getfixturevalue("server")
    return server.url

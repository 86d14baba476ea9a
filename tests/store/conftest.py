"""The places of a run's events: a file, and a PostgreSQL server."""

from __future__ import annotations

import pytest
from servers import Server


@pytest.fixture(params=["file", "server"])
def url(request: pytest.FixtureRequest) -> str | None:
    """Where a run's events are to be: None for a file in its folder."""
    if request.param == "file":
        return None
    server: Server = request.getfixturevalue("server")
    return server.url

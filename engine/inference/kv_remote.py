"""The remote tier: a Redis or Valkey server in which machines share KV.

Covers: whether it can be used. Does not cover reading and writing it: LMCache's ``resp`` adapter,
which would wait for ever for a server that lets nobody in, and does not come back to one that was
away (0.5.6). The tier's bound is the server's own: ``maxmemory`` and ``maxmemory-policy``.
"""

import logging
import os
import socket
from urllib.parse import urlsplit

_ANSWER_SECONDS = 2.0
_log = logging.getLogger(__name__)


def reached(address: str | None) -> tuple[str, int] | None:
    """Return the host and port of a remote tier; None, with a warning, if it can't be used.

    LMCache reads the user's name and password in the environment, and so does this.

    Args:
        address: ``redis://HOST:PORT``; None for no remote tier.
    """
    if address is None:
        return None
    found = urlsplit(address)
    assert found.hostname is not None and found.port is not None  # as the settings have it
    place = (found.hostname, found.port)
    try:
        with (
            socket.create_connection(place, timeout=_ANSWER_SECONDS) as connection,
            connection.makefile("rwb") as file,
        ):
            for command, expected in _greeting():
                file.write(_message(command))
                file.flush()
                answer = file.readline(256).decode(errors="replace").strip()
                if answer != expected:
                    raise OSError(f"{command[0]} was answered with {answer!r}")
    except OSError as error:
        _log.warning("%s can't be used, so no KV is shared by machines: %s", address, error)
        return None
    return place


def _greeting() -> list[tuple[list[str], str]]:
    """Return the commands that show whether the server can be used, each with its answer."""
    user = os.environ.get("LMCACHE_RESP_USERNAME", "")
    password = os.environ.get("LMCACHE_RESP_PASSWORD", "")
    ping = (["PING"], "+PONG")
    return [(["AUTH", *([user] if user else []), password], "+OK"), ping] if password else [ping]


def _message(words: list[str]) -> bytes:
    """Return a command in Redis' protocol (RESP)."""
    parts = [word.encode() for word in words]
    return b"".join(
        [b"*%d\r\n" % len(parts), *(b"$%d\r\n%s\r\n" % (len(each), each) for each in parts)]
    )

"""A Redis or Valkey server of the tests' own, in a temporary folder, on loopback."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PASSWORD = "of-the-tests"


@dataclass(frozen=True, kw_only=True)
class RedisServer:
    """A server that runs, or did."""

    port: int
    pid: int

    @property
    def address(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def ask(self, command: str) -> str:
        """Return the first line of the answer to a command."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            file = connection.makefile("rwb")
            file.write(f"AUTH {PASSWORD}\r\n{command}\r\n".encode())
            file.flush()
            file.readline()
            return file.readline().decode().strip()


@contextmanager
def running(folder: Path) -> Iterator[RedisServer]:
    """Hold a server with a password; skip the test where none is installed."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        pytest.skip("no Redis or Valkey server is installed (Debian: redis-server)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    options = {
        "port": str(port),
        "bind": "127.0.0.1",
        "dir": str(folder),
        "save": "",
        "requirepass": PASSWORD,
        "maxmemory": "512mb",
        "maxmemory-policy": "allkeys-lru",
    }
    command = [program, *(part for key, value in options.items() for part in (f"--{key}", value))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            server = RedisServer(port=port, pid=process.pid)
            _wait_for(server, process)
            yield server
        finally:
            process.kill()


def _wait_for(server: RedisServer, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            assert server.ask("PING") == "+PONG"
            return
        except OSError:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)

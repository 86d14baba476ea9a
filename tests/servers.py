"""A PostgreSQL server of the tests' own, in a temporary folder, reached through a socket there."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import NullPool, create_engine, text

SETTINGS = ("fsync=off", "max_connections=40", "wal_writer_delay=10s")
"""No test loses a machine's power. What is written with ``synchronous_commit=off`` stays in the
server's memory for a while."""


def installed() -> Path | None:
    """Return the folder of the server's programs; None if it is not installed."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    found = shutil.which("postgres")
    every = [Path(found).resolve()] if found else places[-1:]
    return every[0].parent if every else None


class Server:
    """A server, which may be stopped, killed and started again."""

    def __init__(
        self, folder: Path, programs: Path, *, inside: Sequence[str] = (), address: str = ""
    ) -> None:
        """Make its files; it does not run yet.

        Args:
            folder: an empty one.
            programs: the folder of the server's.
            inside: what a command begins with so that it runs where the server is to be.
            address: where anybody may reach it, besides the socket in its folder.
        """
        self.folder = folder
        self._programs = programs
        self._inside = inside
        self._address = address
        self._as: tuple[str, ...] = ()
        if os.geteuid() == 0:  # it refuses to be run by root
            entry = pwd.getpwnam("nobody")
            os.chown(folder, entry.pw_uid, entry.pw_gid)
            self._as = ("setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}")
            self._as += ("--clear-groups",)
        self._call("initdb", "--auth=trust", "--username=brood", "--no-sync")
        if address:
            with (folder / "data/pg_hba.conf").open("a") as file:
                file.write("host all all all trust\n")

    @property
    def url(self) -> str:
        """The address of its database."""
        if self._address:
            return f"postgresql://brood@{self._address}/postgres"
        return f"postgresql://brood@/postgres?host={self.folder}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        places = (f"unix_socket_directories={self.folder}", f"listen_addresses={self._address}")
        options = " ".join(f"-c {each}" for each in (*SETTINGS, *places))
        self._call("pg_ctl", "start", "--wait", "--log", str(self.folder / "log"), "-o", options)

    def stop(self, how: str = "fast") -> None:
        """End it; ``immediate`` is without a checkpoint, and connections are cut."""
        self._call("pg_ctl", "stop", "--wait", "--mode", how)

    def kill(self) -> None:
        """Kill all its processes at once."""
        leader = int((self.folder / "data/postmaster.pid").read_text().splitlines()[0])
        children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
        every = (leader, *map(int, children))
        for process in every:
            with suppress(ProcessLookupError):  # without their leader they end by themselves
                os.kill(process, signal.SIGKILL)
        while any(map(is_alive, every)):
            time.sleep(0.01)
        # A machine that starts again has no such process; here its number may be a zombie's.
        for lock in ("data/postmaster.pid", ".s.PGSQL.5432.lock"):
            (self.folder / lock).unlink()

    def sql(self, statement: str) -> list[tuple[object, ...]]:
        """Execute a statement; return its rows."""
        url = f"postgresql+psycopg://brood@/postgres?host={self.folder}"
        engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            found = connection.execute(text(statement))
            return [tuple(row) for row in found] if found.returns_rows else []

    def drop_all(self) -> None:
        """Remove the schemas of all runs."""
        for (name,) in self.sql(
            "SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|info|public)'"
        ):
            self.sql(f'DROP SCHEMA "{name}" CASCADE')

    def _call(self, program: str, *arguments: str) -> None:
        data = str(self.folder / "data")
        done = subprocess.run(
            [*self._inside, *self._as, str(self._programs / program), "-D", data, *arguments],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        log = self.folder / "log"
        assert done.returncode == 0, log.read_text() if log.exists() else program


def is_alive(process: int) -> bool:
    """Whether a process holds anything; a zombie does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the latter if it goes before it is read
        return False
    return state != "Z"


@contextmanager
def running(programs: Path, *, inside: Sequence[str] = (), address: str = "") -> Iterator[Server]:
    """Hold a server that runs; see `Server`."""
    # Not below pytest's folder, which only its user may enter.
    folder = Path(tempfile.mkdtemp(prefix="brood-postgres-"))
    try:
        server = Server(folder, programs, inside=inside, address=address)
        server.start()
        try:
            yield server
        finally:
            if (folder / "data/postmaster.pid").exists():
                server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)

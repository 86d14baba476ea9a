"""A server that goes away, forgets, or answers nobody: nothing is lost or there twice."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from servers import Server

from engine.core import INITIAL, Evaluation, UserError
from engine.store import EventLog, Session, Verdict, create_run, read_log

SESSION = Session(number=0, engine="0", fingerprint="f")
CUT_OFF = """
SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory'
"""
"""Ends who holds a lock, and waits until it is gone: a slow server may take seconds."""


def verdict(name: str) -> Verdict:
    return Verdict(candidate=name, evaluation=Evaluation(score=1.0, failure=None))


@pytest.fixture
def folder(tmp_path: Path, server: Server) -> Path:
    return made(tmp_path / "one", server.url)


def made(folder: Path, url: str) -> Path:
    first = Verdict(
        candidate=INITIAL, evaluation=Evaluation(score=1.0, failure=None), program="x = 1\n"
    )
    create_run(folder, write_config=lambda path: path.touch(), events=[SESSION, first], url=url)
    return folder


def names(folder: Path) -> list[str]:
    """Whose verdicts are there, in their order."""
    every = (recorded.event for recorded in read_log(folder))
    return [each.candidate for each in every if isinstance(each, Verdict)][1:]


def write(log: EventLog, *names: str) -> None:
    for name in names:
        log.append(verdict(name))
    log.commit()


def in_a_thread(log: EventLog, *names: str) -> threading.Thread:
    thread = threading.Thread(target=write, args=(log, *names), daemon=True)
    thread.start()
    return thread


def test_a_server_that_stops_is_waited_for(
    folder: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with EventLog(folder) as log:
        write(log, "0.0")
        server.stop("immediate")
        writing = in_a_thread(log, "0.1", "0.2")
        writing.join(1.0)
        assert writing.is_alive()
        with pytest.raises(UserError, match="can't be opened"):
            names(folder)
        server.start()
        writing.join(120.0)
        assert not writing.is_alive()
        write(log, "0.3")
    assert names(folder) == ["0.0", "0.1", "0.2", "0.3"]
    assert "waiting for postgresql://" in caplog.text and "is back after" in caplog.text


def test_what_a_killed_server_had_not_on_disk_is_written_again(
    folder: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.sql("ALTER ROLE brood SET synchronous_commit = off")  # an operator's choice
    try:
        with EventLog(folder) as log:
            write(log, "0.0")
            server.sql("CHECKPOINT")
            for number in range(1, 50):
                write(log, f"0.{number}")
            server.kill()
            server.start()
            lost = 50 - len(names(folder))
            write(log, "0.50")
        assert lost > 0
        assert names(folder) == [f"0.{number}" for number in range(51)]
        assert f"had lost its last {lost} events" in caplog.text
    finally:
        server.sql("ALTER ROLE brood RESET synchronous_commit")


def test_a_write_whose_end_was_not_heard_of_is_not_made_twice(
    tmp_path: Path, server: Server
) -> None:
    with proxy(server) as through:
        folder = made(tmp_path / "one", through.url)
        with EventLog(folder) as log:
            write(log, "0.0")
            through.swallows = b"COMMIT"
            write(log, "0.1", "0.2")
            assert through.swallowed == 1
            write(log, "0.3")
        assert names(folder) == ["0.0", "0.1", "0.2", "0.3"]


def test_a_writer_that_was_cut_off_finds_that_another_has_gone_on(
    tmp_path: Path, folder: Path, server: Server
) -> None:
    other = tmp_path / "elsewhere"
    shutil.copytree(folder, other)
    with EventLog(folder) as log:
        write(log, "0.0")
        with pytest.raises(UserError, match="another process works on"):
            EventLog(other)
        server.sql(CUT_OFF)
        with EventLog(other) as taken:
            write(taken, "1.0")
        with pytest.raises(UserError, match="another one has gone on") as refused:
            write(log, "0.1")
        assert "\n" not in str(refused.value)
    assert names(folder) == ["0.0", "1.0"]


def test_a_writer_that_was_cut_off_does_not_wait_for_the_one_that_has_gone_on(
    tmp_path: Path, folder: Path, server: Server
) -> None:
    other = tmp_path / "elsewhere"
    shutil.copytree(folder, other)
    refused = list[str]()

    def go_on(log: EventLog) -> None:
        with pytest.raises(UserError, match="another one has gone on") as error:
            write(log, "0.1")
        refused.append(str(error.value))

    with EventLog(folder) as log:
        write(log, "0.0")
        server.sql(CUT_OFF)
        with EventLog(other) as taken:
            going_on = threading.Thread(target=go_on, args=(log,), daemon=True)
            going_on.start()
            going_on.join(1.0)
            assert going_on.is_alive()  # the other one has the lock, and has written nothing
            write(taken, "1.0")
            going_on.join(120.0)
            assert refused
            write(taken, "1.1")
    assert names(folder) == ["0.0", "1.0", "1.1"]


def test_a_writer_that_has_not_what_the_server_lost_says_so(folder: Path, server: Server) -> None:
    with EventLog(folder) as log:
        write(log, "0.0")
    with EventLog(folder) as log:
        server.sql('DELETE FROM "one".events WHERE seq > 2')
        server.sql(CUT_OFF)
        with pytest.raises(UserError, match="ends with event 2 and had 3"):
            write(log, "0.1")


@pytest.mark.parametrize("is_cut_off", [False, True])
def test_a_schema_that_is_dropped_under_a_writer_ends_it_with_one_line(
    folder: Path, server: Server, is_cut_off: bool
) -> None:
    with EventLog(folder) as log:
        write(log, "0.0")
        server.sql('DROP SCHEMA "one" CASCADE')
        if is_cut_off:
            server.sql(CUT_OFF)
        with pytest.raises(UserError, match=r"#one can't be written: .* does not exist") as refused:
            write(log, "0.1")
        assert "\n" not in str(refused.value)


@pytest.fixture
def guest(server: Server) -> Iterator[str]:
    """Return the address for a user who may no more than have runs."""
    server.sql("CREATE ROLE guest LOGIN")
    server.sql("GRANT CREATE ON DATABASE postgres TO guest")
    yield server.url.replace("brood@", "guest@")
    server.sql("DROP OWNED BY guest CASCADE")
    server.sql("DROP ROLE guest")


def test_a_writer_that_may_no_longer_write_ends_with_one_line(
    tmp_path: Path, server: Server, guest: str
) -> None:
    folder = made(tmp_path / "one", guest)
    with EventLog(folder) as log:
        write(log, "0.0")
        server.sql('REVOKE INSERT ON "one".events FROM guest')
        with pytest.raises(UserError, match="#one can't be written: permission denied") as refused:
            write(log, "0.1")
        assert "\n" not in str(refused.value)
    assert names(folder) == ["0.0"]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://a@b/c", "it must be like postgresql://"),
        ("postgresql://a@b", "it must be like postgresql://"),
        ("nonsense", "it must be like postgresql://"),
        ("postgresql://a@b:54x/c", "it must be like postgresql://"),
        ("postgresql://a@::1/c", "it must be like postgresql://"),
        ("postgresql://a:secret@b/c", "PGPASSFILE"),
        ("postgresql://a@b/c?password=secret", "PGPASSFILE"),
        ("postgresql://a@127.0.0.1:1/c", "can't be asked"),
    ],
)
def test_an_address_that_is_none_is_refused_and_nothing_is_left(
    tmp_path: Path, url: str, words: str
) -> None:
    from engine.store import check_server

    for attempt in (lambda: check_server(url, names=["one"]), lambda: made(tmp_path / "one", url)):
        with pytest.raises(UserError) as refused:
            attempt()
        assert "\n" not in str(refused.value) and "secret" not in str(refused.value)
    with pytest.raises(UserError, match=words):
        check_server(url, names=["one"])
    assert not [*tmp_path.iterdir()]


def test_a_run_of_the_same_name_is_refused_and_stays(tmp_path: Path, server: Server) -> None:
    folder = made(tmp_path / "one", server.url)
    with pytest.raises(UserError, match="give another name="):
        made(tmp_path / "other" / "one", server.url)
    assert next(read_log(folder)).event == SESSION
    assert not (tmp_path / "other").exists() or not [*(tmp_path / "other").iterdir()]


def test_the_name_of_a_run_may_have_a_number_sign_in_it(tmp_path: Path, server: Server) -> None:
    folder = made(tmp_path / "one#two", server.url)
    with EventLog(folder) as log:
        write(log, "0.0")
    assert names(folder) == ["0.0"]
    assert server.sql("SELECT 1 FROM pg_namespace WHERE nspname = 'one#two'") == [(1,)]


def test_a_run_whose_folder_cannot_be_made_leaves_no_schema(tmp_path: Path, server: Server) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "file").touch()
    with pytest.raises(UserError, match="can't be made"):
        made(tmp_path / "one", server.url)
    assert server.sql("SELECT 1 FROM pg_namespace WHERE nspname = 'one'") == []


def test_a_schema_of_another_version_or_of_nobody_is_refused(folder: Path, server: Server) -> None:
    server.sql("COMMENT ON SCHEMA one IS 'brood 5'")
    with pytest.raises(
        UserError, match="has schema 5, and this version of Brood reads none below 6"
    ):
        EventLog(folder)
    server.sql("COMMENT ON SCHEMA one IS NULL")
    with pytest.raises(UserError, match="is not the log of a run"):
        EventLog(folder)


class Proxy:
    """Passes bytes on to a server; may swallow the answer to one request, and cut the connection.

    Attributes:
        url: under which it is reached.
        swallows: words of the request; none for no more.
        swallowed: how often it did.
    """

    def __init__(self, listening: socket.socket, server: Server) -> None:
        host, port = listening.getsockname()
        self.url = f"postgresql://brood@{host}:{port}/postgres"
        self.swallows = b""
        self.swallowed = 0
        self._server = server

    def serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as upstream:
            upstream.connect(str(self._server.folder / ".s.PGSQL.5432"))
            back = threading.Thread(target=pump, args=(upstream, client), daemon=True)
            back.start()
            with suppress(OSError):
                while data := client.recv(1 << 16):
                    if self.swallows and self.swallows in data:
                        self.swallows = b""
                        self.swallowed += 1
                        client.shutdown(socket.SHUT_RDWR)  # the answer comes to nobody
                        upstream.sendall(data)
                        time.sleep(0.3)
                        break
                    upstream.sendall(data)
            upstream.shutdown(socket.SHUT_RDWR)


def pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy(server: Server) -> Iterator[Proxy]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = Proxy(listening, server)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    threading.Thread(target=made.serve, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield made
        listening.shutdown(socket.SHUT_RDWR)

"""The remote tier, with a real server: shared by machines, and missed without harm."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kv_sessions import assert_complete, session
from redis_server import PASSWORD, RedisServer, running

from engine.inference.kv_remote import reached


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisServer]:
    """A server with a password, which the environment has."""
    monkeypatch.setenv("LMCACHE_RESP_PASSWORD", PASSWORD)
    with running(tmp_path) as server:
        yield server


@pytest.mark.slow
def test_a_machine_finds_what_another_one_has_stored(server: RedisServer, tmp_path: Path) -> None:
    seen = [session(tmp_path / name, remote=server.address) for name in ("one", "other")]
    cold, warm = (each["answers"][0] for each in seen)
    assert [each["warnings"] for each in seen] == [[], []]
    assert cold["cached"][0] == 0
    assert all(cached >= 0.9 * warm["prompt_tokens"] for cached in warm["cached"])
    assert warm["texts"] == cold["texts"]


@pytest.mark.slow
def test_a_remote_tier_that_dies_costs_no_child(server: RedisServer, tmp_path: Path) -> None:
    folder, fault = tmp_path / "kv", signal.SIGKILL
    seen = session(folder, remote=server.address, fault=fault, victim=server.pid)
    assert_complete(seen)
    assert seen["warnings"] == []  # the other tiers are used


@pytest.mark.slow
def test_a_remote_tier_that_hangs_is_given_up_with_the_others(
    server: RedisServer, tmp_path: Path
) -> None:
    folder, fault = tmp_path / "kv", signal.SIGSTOP
    seen = session(folder, remote=server.address, fault=fault, victim=server.pid)
    assert_complete(seen)
    (line,) = seen["warnings"]
    assert line.startswith("the LMCache server failed")


@pytest.mark.slow
def test_a_remote_tier_that_is_not_there_is_said_and_the_others_are_used(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"redis://127.0.0.1:{probe.getsockname()[1]}"
    seen = [session(tmp_path, remote=address) for _ in range(2)]
    for each in seen:
        assert_complete(each)
        (line,) = each["warnings"]
        assert line.startswith(f"{address} can't be used, so no KV is shared by machines")
    warm = seen[1]["answers"][0]
    assert all(cached >= 0.9 * warm["prompt_tokens"] for cached in warm["cached"])


def test_a_server_that_lets_us_in_is_used(server: RedisServer) -> None:
    assert reached(server.address) == ("127.0.0.1", server.port)


@pytest.mark.parametrize("password", [None, "wrong", "a b\r\nPING"])
def test_a_server_that_does_not_let_us_in_is_not_used(
    server: RedisServer,
    password: str | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.delenv("LMCACHE_RESP_PASSWORD")
    if password is not None:
        monkeypatch.setenv("LMCACHE_RESP_PASSWORD", password)
    assert reached(server.address) is None
    (line,) = caplog.messages
    assert ("NOAUTH" if password is None else "WRONGPASS") in line
    assert password is None or password not in line


def test_a_user_with_a_name_is_let_in(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert server.ask("ACL SETUSER brood on >secret +ping") == "+OK"
    monkeypatch.setenv("LMCACHE_RESP_USERNAME", "brood")
    monkeypatch.setenv("LMCACHE_RESP_PASSWORD", "secret")
    assert reached(server.address) == ("127.0.0.1", server.port)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff\xfe", b""])
def test_what_is_no_redis_server_is_not_used(
    answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(64)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        address = f"redis://127.0.0.1:{listening.getsockname()[1]}"
        assert reached(address) is None
        thread.join()
    (line,) = caplog.messages
    assert line.startswith(f"{address} can't be used")


def test_no_remote_tier_is_asked_for_by_default() -> None:
    assert reached(None) is None

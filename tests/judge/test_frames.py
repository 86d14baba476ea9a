"""Frames over a real socket: bounds, ends, and what comes in the middle."""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from engine.judge.frames import MOST_BLOBS, MOST_COUNT, MOST_JSON, Channel, Closed
from engine.judge.values import WireError

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_a_frame_arrives_whole(ends: Ends) -> None:
    blobs = [b"", b"x" * 3_000_000, b"end"]
    sender = threading.Thread(
        target=Channel(ends[0].fileno()).send, args=({"a": [1.5, "½\ud800"]}, blobs)
    )
    sender.start()
    tree, found = Channel(ends[1].fileno()).receive()
    sender.join()
    assert tree == {"a": [1.5, "½\ud800"]}
    assert [bytes(each) for each in found] == blobs


@pytest.mark.parametrize(
    "header",
    [
        (MOST_JSON + 1, 0, 0),
        (2, MOST_COUNT + 1, 0),
        (2, 1, MOST_BLOBS + 1),
        (2**64 - 1, 2**64 - 1, 2**64 - 1),
    ],
)
def test_a_header_that_claims_too_much(ends: Ends, header: tuple[int, int, int]) -> None:
    ends[0].sendall(struct.pack("<QQQ", *header))
    with pytest.raises(WireError, match="too large"):
        Channel(ends[1].fileno()).receive()


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack("<QQQ", 2, 0, 0) + b"{]",
        struct.pack("<QQQ", 0, 0, 0),
        struct.pack("<QQQ", 2, 1, 1) + b"{}" + struct.pack("<Q", 2) + b"x",
        struct.pack("<QQQ", 4, 0, 0) + b"\xff\xfe\xff\xfe",
        struct.pack("<QQQ", 200_000, 0, 0) + b"[" * 200_000,
    ],
    ids=["no JSON", "empty", "lengths", "no text", "deep"],
)
def test_a_frame_that_is_none(ends: Ends, frame: bytes) -> None:
    sender = threading.Thread(target=ends[0].sendall, args=(frame,))
    sender.start()
    with pytest.raises(WireError):
        Channel(ends[1].fileno()).receive()
    sender.join()


def test_the_other_side_ends(ends: Ends) -> None:
    ends[0].sendall(struct.pack("<QQQ", 20, 0, 0) + b"half")
    ends[0].close()
    channel = Channel(ends[1].fileno())
    with pytest.raises(Closed):
        channel.receive()
    with pytest.raises(Closed):
        channel.send([1] * 100_000)
        channel.send([1] * 100_000)


def test_a_value_that_is_too_large_is_not_begun(ends: Ends) -> None:
    channel = Channel(ends[0].fileno())
    with pytest.raises(WireError, match="too large"):
        channel.send("x" * (MOST_JSON + 1))
    channel.send("next")
    assert Channel(ends[1].fileno()).receive()[0] == "next"


def test_a_frame_survives_an_alarm(ends: Ends) -> None:
    class Late(Exception):
        pass

    def late(*_: object) -> None:
        raise Late

    channel, whole = Channel(ends[1].fileno()), struct.pack("<QQQ", 3, 0, 0) + b"[1]"
    os.write(ends[0].fileno(), whole[:10])
    before = signal.signal(signal.SIGALRM, late)
    try:
        with pytest.raises(Late):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            channel.receive()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    os.write(ends[0].fileno(), whole[10:])
    assert channel.receive()[0] == [1]

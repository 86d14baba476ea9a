"""Frames between the processes: what is sent arrives; anything else is a lost worker."""

import json
import socket
import struct
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core import ArraySpec, Case
from engine.evaluation import wire
from engine.evaluation.wire import Ended, Lost, Observation, Setup


def receive(data: bytes, most: int = 100) -> tuple[dict[str, object], bytearray]:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            theirs.sendall(data)
        return wire.receive_frame(ours, deadline=time.monotonic() + 5, most=most)


def frame(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack("!IQ", len(header), len(body)) + header + body


def test_a_setup_arrives_as_it_was() -> None:
    case = Case(
        name="c",
        args=(np.arange(6, dtype="int16").reshape(2, 3).T, 2, 0.1),
        kwargs={"x": np.array(1.5), "y": float("inf")},
        outputs={"a": ArraySpec(shape=(2, 2), dtype="int8", finite=False)},
    )
    setup = Setup(
        entry_point="f", cases=[case], isolate_cases=True, seconds=1.5, memory_bytes=1 << 40
    )
    header, body = wire.encode_setup(setup)
    arrived = wire.decode_setup(json.loads(json.dumps(header)), bytearray(body))
    (got,) = arrived.cases
    np.testing.assert_array_equal(got.args[0], case.args[0])
    assert got.args[0].dtype == "int16" and got.args[0].flags.writeable
    assert got.args[1:] == (2, 0.1) and got.kwargs == {"x": np.array(1.5), "y": float("inf")}
    assert got.outputs == case.outputs
    assert (arrived.seconds, arrived.memory_bytes, arrived.isolate_cases) == (1.5, 1 << 40, True)


def test_an_observation_arrives_as_it_was() -> None:
    seen = Observation(
        ended=Ended.EXIT, exit_code=-9, seconds=0.5, peak_bytes=7, output="a", results=(b"x", b"")
    )
    header, body = wire.encode_observation(seen)
    assert wire.decode_observation(json.loads(json.dumps(header)), bytearray(body)) == seen


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"abc",
        frame(b"{}")[:-1],
        frame(b"{}", bytes(10))[:-1],
        frame(b"{}", bytes(101)),
        frame(b" " * (1 << 17)),
        struct.pack("!IQ", 2, 1 << 63) + b"{}",
        frame(b"[1]"),
        frame(b"nonsense"),
        frame(b"\xff\xfe"),
        frame(b"[" * 60000),
    ],
)
def test_a_malformed_frame_is_a_loss(data: bytes) -> None:
    with pytest.raises(Lost):
        receive(data)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_frame_or_a_loss(data: bytes) -> None:
    try:
        header, _ = receive(data)
    except Lost:
        return
    assert isinstance(header, dict)


@given(
    st.dictionaries(
        st.sampled_from(["ended", "exit_code", "seconds", "peak_bytes", "output", "sizes"]),
        st.none()
        | st.integers()
        | st.lists(st.integers())
        | st.sampled_from(["", "exit", "1e999"]),
    ),
    st.binary(max_size=8),
)
def test_any_header_gives_an_observation_or_a_loss(header: dict[str, object], body: bytes) -> None:
    try:
        seen = wire.decode_observation(header, bytearray(body))
    except Lost:
        return
    assert b"".join(seen.results) == body


def test_silence_ends_at_the_deadline() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError):
        wire.receive_frame(ours, deadline=time.monotonic() + 0.05)

"""Shared memory: sizes that nobody can change, inputs that nobody can write, lengths that lie."""

import errno
import mmap
import os
from collections.abc import Iterator

import pytest

from engine.evaluation.wire import (
    LENGTH_BYTES,
    ResultMemory,
    map_result,
    read_input,
    sealed_input,
    write_result,
)


@pytest.fixture
def given() -> Iterator[int]:
    fd = sealed_input(b"what a candidate gets")
    yield fd
    os.close(fd)


@pytest.fixture
def result() -> Iterator[ResultMemory]:
    memory = ResultMemory(100)
    yield memory
    memory.close()


def test_an_input_is_read_as_it_was_written(given: int) -> None:
    assert read_input(given) == read_input(given) == b"what a candidate gets"


def test_a_large_input_is_written_whole() -> None:
    data = os.urandom(1 << 20) * 8
    fd = sealed_input(data)
    assert read_input(fd) == data
    os.close(fd)


def test_an_input_can_not_be_changed(given: int) -> None:
    for change in (
        lambda: os.write(given, b"x"),
        lambda: os.pwrite(given, b"x", 0),
        lambda: os.ftruncate(given, 0),
        lambda: os.ftruncate(given, 1 << 20),
        lambda: os.posix_fallocate(given, 0, 1 << 20),
        lambda: mmap.mmap(given, 0),
        lambda: mmap.mmap(given, 0, access=mmap.ACCESS_WRITE),
    ):
        with pytest.raises(OSError) as caught:
            change()
        assert caught.value.errno == errno.EPERM
    assert read_input(given) == b"what a candidate gets"


def test_an_input_opened_anew_is_sealed_too(given: int) -> None:
    fd = os.open(f"/proc/self/fd/{given}", os.O_RDWR)
    with pytest.raises(PermissionError):
        os.write(fd, b"x")
    os.close(fd)


def test_a_results_size_can_not_be_changed(result: ResultMemory) -> None:
    for size in (0, 50, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(result.fd, size)
    assert os.fstat(result.fd).st_size == LENGTH_BYTES + 100


def test_a_result_arrives(result: ResultMemory) -> None:
    assert result.read() == b""
    for data in (b"result", b"", b"x" * 100):
        write_result(map_result(result.fd), data)
        assert result.read() == data


def test_a_result_that_is_too_long_is_refused(result: ResultMemory) -> None:
    with pytest.raises(ValueError):
        write_result(map_result(result.fd), b"x" * 101)
    assert result.read() == b""


@pytest.mark.parametrize("length", [101, 1 << 31, 1 << 63, (1 << 64) - 1])
def test_a_length_that_lies_gives_no_more_than_there_is(result: ResultMemory, length: int) -> None:
    with map_result(result.fd) as memory:
        memory[:LENGTH_BYTES] = length.to_bytes(LENGTH_BYTES, "little")
    assert result.read() == bytes(100)


def test_what_was_read_is_a_copy(result: ResultMemory) -> None:
    write_result(map_result(result.fd), b"honest")
    data = result.read()
    write_result(map_result(result.fd), b"forged")
    assert data == b"honest"

"""Opens boxes, hands programs to them, watches them, and says what was seen.

The next box is opened before there is a program for it: its judge waits behind its walls, so that
an evaluation pays for neither. One box at a time. It is closed, and all of it killed, when its
judge ends, when its time is over, or when it takes more than it may; only then is anything that it
printed read to its end.

What was seen goes to the lane in memory that no box has: a JSON object of texts (`Seen`).
"""

import contextlib
import dataclasses
import json
import os
import select
import socket
import struct
import time
from pathlib import Path

from engine.evaluation._native import Box, Ended, Role
from engine.evaluation.watched import clear, is_larger
from engine.evaluation.wire import map_result, write_result

READY = 3
"""Descriptor on which a judge says that its walls stand."""
CHANNEL = 4
"""Descriptor of the socket between a judge and the program that it is split from."""

STDOUT_BYTES = 1 << 20
"""How much of the end of a judge's output is kept; its last line is its verdict."""
OTHER_BYTES = 1 << 14
"""How much of the end of all other output is kept."""
RESULT_BYTES = 6 * (STDOUT_BYTES + 2 * OTHER_BYTES) + 1024
"""Room for a `Seen`: JSON writes a byte in six characters at the most."""

_REQUEST = struct.Struct("@II")  # as in native/protocol.hpp
_REPLY = struct.Struct("@IiQIId")  # and the seconds of one process
_LOOK_SECONDS = 0.02  # how often memory and processes are counted
_LONGEST_WAKEUP = 1.0  # seconds; who is woken later than that stood still
_CHUNK = 1 << 16


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What was seen of a run besides its end, as text with replacements.

    Attributes:
        stdout: the end of what the judge's processes printed.
        stderr: likewise, on the other stream.
        program: the end of what a program printed that the judge is split from.
        candidate: its exit code, negated for a signal; None if it lived as long as the judge.
    """

    stdout: str
    stderr: str
    program: str
    candidate: int | None


class _Tail:
    """The reading end of a pipe, and the end of what came out of it."""

    def __init__(self, capacity: int) -> None:
        self.reading, self.writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self.writing, True)
        self._capacity = capacity
        self._data = bytearray()

    def take(self) -> bool:
        """Take what is there, up to `_CHUNK`; return whether there may be more."""
        try:
            data = os.read(self.reading, _CHUNK)
        except BlockingIOError:
            return False
        self._data += data
        if len(self._data) > 2 * self._capacity:
            del self._data[: -self._capacity]
        return bool(data)

    @property
    def text(self) -> str:
        return bytes(self._data[-self._capacity :]).decode(errors="replace")

    def close(self) -> None:
        os.close(self.reading)


class Attendant:
    """Serves one connection; see the module."""

    def __init__(
        self,
        connection: socket.socket,
        box: Box,
        *,
        result: int,
        is_split: bool,
        seconds: float,
        memory_bytes: int,
        processes: int,
        watched: Path | None,
        scratch_bytes: int,
    ) -> None:
        """Begin with no box open.

        Args:
            connection: to the thread that is served.
            box: the boxes' walls and limits.
            result: descriptor of the memory for what was seen.
            is_split: whether a box has a second process, for the program.
            seconds: wall seconds for a program.
            memory_bytes: memory of all processes of a box together.
            processes: most processes and threads in a box.
            watched: the scratch folder, where it has no bound of its own.
            scratch_bytes: bound of that.
        """
        self._connection = connection
        self._box = box
        self._result = result
        self._is_split = is_split
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._processes = processes
        self._watched = watched
        self._scratch_bytes = scratch_bytes

    def serve(self) -> Role:
        """Serve until the connection ends; in each process of a box, return what it is for."""
        role = self._open()
        while role is Role.SERVER and (program := self._receive()) is not None:
            if self._is_over():  # it was killed while it waited
                self._abandon()
                role = self._open()
                if role is not Role.SERVER:
                    break
            reply, seen = self._run(program)
            room = map_result(self._result)  # no longer than needed: a box would inherit it
            write_result(room, json.dumps(dataclasses.asdict(seen)).encode())
            room.close()
            self._connection.sendall(reply)
            role = self._open()
        if role is Role.SERVER:
            self._abandon()
        return role

    def _receive(self) -> bytes | None:
        """Return the next program; None when the connection has ended."""
        head = self._receive_all(_REQUEST.size)
        return None if head is None else self._receive_all(_REQUEST.unpack(head)[1])

    def _receive_all(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            part = self._connection.recv(size - len(data))
            if not part:
                return None
            data += part
        return bytes(data)

    def _open(self) -> Role:
        """Open the next box; returns in each of its processes as well."""
        self._clear_watched()
        its_program, self._program = os.pipe()
        self._ready, its_ready = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._stdout = _Tail(STDOUT_BYTES)
        self._stderr, self._printed = _Tail(OTHER_BYTES), _Tail(OTHER_BYTES)
        judge = [its_program, self._stdout.writing, self._stderr.writing, its_ready]
        candidate: list[int] = []
        ends = socket.socketpair() if self._is_split else ()
        if ends:
            null = os.open(os.devnull, os.O_RDONLY)
            judge.append(ends[0].fileno())
            # Five, so that the channel has the same number in both.
            printed = self._printed.writing
            candidate = [null, printed, printed, null, ends[1].fileno()]
        role = self._box.open(judge=judge, candidate=candidate)
        if role is not Role.SERVER:
            for end in ends:
                end.detach()
            return role
        for descriptor in (its_program, its_ready, self._stdout.writing, self._stderr.writing):
            os.close(descriptor)
        os.close(self._printed.writing)
        for end in ends:
            end.close()
        if ends:
            os.close(null)
        return role

    def _is_over(self) -> bool:
        return bool(select.select([self._box.over], [], [], 0)[0])

    def _abandon(self) -> None:
        """Close a box that got no program."""
        os.close(self._program)
        self._box.close()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for tail in (self._stdout, self._stderr, self._printed):
            tail.close()
        os.close(self._ready)

    def _run(self, program: bytes) -> tuple[bytes, Seen]:
        """Have the box that is open judge a program; return the reply and what was seen."""
        Box.hurry(True)
        began = time.monotonic()
        with contextlib.suppress(BrokenPipeError), os.fdopen(self._program, "wb") as pipe:
            pipe.write(program)
        ended, stood = self._watch(began + self._seconds)
        seconds = time.monotonic() - began - stood
        end = self._box.close()
        Box.hurry(False)
        tails = (self._stdout, self._stderr, self._printed)
        for tail in tails:
            while tail.take():
                pass
        stdout, stderr, printed = (tail.text for tail in tails)
        try:
            confined = os.read(self._ready, 1) == b"R"
        except BlockingIOError:
            confined = False
        self._close_pipes()
        if ended is Ended.EXITED and not confined:
            ended = Ended.UNCONFINED
        code = end.judge if ended is Ended.EXITED and end.judge is not None else 0
        if ended is Ended.EXITED and end.judge is None:
            code = -9  # the box as a whole was killed, by somebody else
        reply = _REPLY.pack(ended.value, code, end.peak_bytes, 1, 0, seconds)
        return reply, Seen(stdout=stdout, stderr=stderr, program=printed, candidate=end.candidate)

    def _watch(self, deadline: float) -> tuple[Ended, float]:
        """Take in what is printed until the judge ends, or has to be ended.

        Returns:
            How it ended, and the seconds in which this process stood still, and most likely all of
            the box with it (``native/standstill.hpp``): they do not count.
        """
        stood = 0.0
        poll = select.poll()
        tails = {tail.reading: tail for tail in (self._stdout, self._stderr, self._printed)}
        for descriptor in (*tails, self._box.over):
            poll.register(descriptor, select.POLLIN)
        look = time.monotonic() + _LOOK_SECONDS
        while True:
            now = time.monotonic()
            if now >= deadline + stood:
                return Ended.DEADLINE, stood
            if now >= look:
                if (excess := self._excess()) is not None:
                    return excess, stood
                now = time.monotonic()
                look = now + _LOOK_SECONDS
            wait = max(0.0, min(deadline + stood, look) - now)
            ready = poll.poll(1000 * wait)
            took = time.monotonic() - now
            if took > wait + _LONGEST_WAKEUP:
                stood += took - wait
            for descriptor, _ in ready:
                if descriptor == self._box.over:
                    return Ended.EXITED, stood
                if not tails[descriptor].take():
                    poll.unregister(descriptor)

    def _excess(self) -> Ended | None:
        """Return what the box has too much of."""
        tasks, size = self._box.usage(exactly=False)
        if tasks > self._processes:
            return Ended.CROWDED
        if size > self._memory_bytes:  # what processes share was counted for each
            _, size = self._box.usage(exactly=True)
        if size > self._memory_bytes:
            return Ended.MEMORY
        if self._watched is not None and is_larger(self._watched, self._scratch_bytes):
            return Ended.SCRATCH
        return None

    def _clear_watched(self) -> None:
        """Empty a scratch folder that does not end with its box."""
        if self._watched is not None:
            clear(self._watched)

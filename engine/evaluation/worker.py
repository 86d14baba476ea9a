"""The fork server: a warm interpreter that forks one child for each candidate, or each case.

``python -m engine.evaluation.worker PARENT_PID SOCKET_FD``, started by ``process``. It imports
what candidates import, receives the problem's cases once, and then, for each program, forks,
watches, kills at the deadline and reports what it saw. It is single-threaded, so that forking
is safe; it never runs a candidate's code and never reads a candidate's result.

Does not cover: keeping a candidate from files, the network or this very process.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import math
import os
import select
import signal
import socket
import sys
import time
from typing import NoReturn

import numpy as np

from engine.core import Array
from engine.evaluation import _native, tree, wire
from engine.evaluation.child import EXIT_RETURNED, Child, InChild, run_child
from engine.evaluation.contract import packed_size
from engine.evaluation.wire import Ended, Observation, Setup

WARM_MODULES = (
    "collections",
    "dataclasses",
    "functools",
    "heapq",
    "itertools",
    "numba",
    "numpy.fft",
    "numpy.linalg",
    "numpy.polynomial",
    "scipy.fft",
    "scipy.fftpack",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.linalg",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.signal",
    "scipy.sparse",
    "scipy.spatial",
    "scipy.special",
    "scipy.stats",
    "statistics",
)
OUTPUT_BYTES = 2048
"""How much of the end of a candidate's printed output is kept."""

_READ_BYTES = 1 << 16
_DRAIN_READS = 32  # a pipe holds at most 1 MiB unless the administrator allowed more


def main() -> None:
    """Serve programs until the other side of the socket is closed."""
    try:
        _serve()
        return
    except InChild as forked:
        child = forked.child
    run_child(child)


def _serve() -> None:
    parent, fd = map(int, sys.argv[1:])
    _native.die_with_parent(parent=parent, signal=signal.SIGTERM)
    _native.adopt_orphans()
    sock = socket.socket(fileno=fd)
    setup = wire.decode_setup(*wire.receive_frame(sock, deadline=None))
    _warm_up()
    signal.signal(signal.SIGTERM, _leave)
    try:
        wire.send_frame(sock, {"ready": True}, deadline=None)
        while True:
            request, _ = wire.receive_frame(sock, deadline=None)
            observation = _observe(setup, request["program"])
            wire.send_frame(sock, *wire.encode_observation(observation), deadline=None)
    except wire.Lost:
        return  # the pool is closed, or its process has ended
    finally:
        tree.kill_and_reap_descendants()  # a forked child, which passes here too, has none


def _leave(signum: int, frame: object) -> NoReturn:
    """Turn SIGTERM, which also says that the parent ended, into an orderly end."""
    # The kernel sends it again for each thread of the dying parent; the clean-up must not stop.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(0)


def _warm_up() -> None:
    """Do once what every candidate would otherwise pay for, then keep it out of the collector."""
    for name in WARM_MODULES:
        importlib.import_module(name)
    import numba

    def total(values: Array) -> float:
        result = 0.0
        for value in values:
            result += value
        return result

    numba.njit(total)(np.ones(2))  # the first compilation loads the compiler's own tables
    np.random.seed(0)  # every candidate starts from the same state, on every worker
    gc.collect()
    gc.freeze()


def _observe(setup: Setup, text: str) -> Observation:
    """Run one program and return what was seen; nothing of it is left running."""
    groups = [[case] for case in setup.cases] if setup.isolate_cases else [setup.cases]
    seconds, peak_bytes = 0.0, 0
    results: list[bytes] = []
    output = bytearray()
    for index, group in enumerate(groups):
        run = _ChildRun(setup, text, index if setup.isolate_cases else None)
        most = max(1 + sum(packed_size(case) for case in group), wire.RAISED_BYTES)
        ended = run.watch(seconds_left=setup.seconds - seconds, most=most)
        exit_code, peak = run.end()
        seconds += run.seconds
        peak_bytes = max(peak_bytes, peak)
        results.append(bytes(run.result))
        output += run.output
        if ended is not Ended.EXIT or exit_code != EXIT_RETURNED:
            break
    return Observation(
        ended=ended,
        exit_code=exit_code,
        seconds=seconds,
        peak_bytes=peak_bytes,
        output=output[-OUTPUT_BYTES:].decode(errors="replace"),
        results=tuple(results),
    )


class _ChildRun:
    """One forked child: started by the constructor, then watched, then ended."""

    def __init__(self, setup: Setup, text: str, case_index: int | None) -> None:
        result_read, result_write = os.pipe()
        output_read, output_write = os.pipe()
        self.result = bytearray()
        self.output = bytearray()
        self._fds = {result_read: self.result, output_read: self.output}
        self._result_fd, self._output_fd = result_read, output_read
        for fd in self._fds:
            os.set_blocking(fd, False)
        worker = os.getpid()
        self._started = time.monotonic()
        self._pid = os.fork()
        if self._pid == 0:
            child = Child(
                worker=worker,
                setup=setup,
                program=text,
                case_index=case_index,
                result_fd=result_write,
                output_fd=output_write,
            )
            raise InChild(child)
        os.close(result_write)
        os.close(output_write)
        self._pidfd = os.pidfd_open(self._pid)
        self.seconds = 0.0

    def watch(self, *, seconds_left: float, most: int) -> Ended:
        """Collect what the child writes until it exits, or has to be killed."""
        deadline = self._started + seconds_left
        poller = select.poll()
        for fd in (*self._fds, self._pidfd):
            poller.register(fd, select.POLLIN)
        ended = None
        while ended is None:
            left = deadline - time.monotonic()
            if left <= 0:
                ended = Ended.DEADLINE
                break
            ready = [fd for fd, _ in poller.poll(math.ceil(left * 1000))]
            for fd in self._fds:
                if fd in ready and not self._read(fd):
                    poller.unregister(fd)
            if len(self.result) > most:
                ended = Ended.OVERSIZE
            elif self._pidfd in ready:
                ended = self._drain(most)
        self.seconds = time.monotonic() - self._started
        return ended

    def end(self) -> tuple[int, int]:
        """Kill and reap the child and all that it started; return exit code and peak bytes."""
        tree.kill(self._pid)
        with contextlib.suppress(ProcessLookupError):  # it ended before it had a group
            os.killpg(self._pid, signal.SIGKILL)
        _, status, usage = os.wait4(self._pid, 0)
        tree.kill_and_reap_descendants()
        for fd in (*self._fds, self._pidfd):
            os.close(fd)
        return os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10

    def _read(self, fd: int) -> bool:
        """Read what is there into the pipe's buffer; return whether the pipe is still open."""
        try:
            data = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return True
        self._fds[fd] += data
        if fd == self._output_fd:
            del self.output[:-OUTPUT_BYTES]
        return bool(data)

    def _drain(self, most: int) -> Ended:
        """Read what an ended child left in its pipes; others may still be writing to them."""
        for fd in self._fds:
            for _ in range(_DRAIN_READS):
                size = len(self._fds[fd])
                if not self._read(fd) or (fd == self._result_fd and len(self._fds[fd]) == size):
                    break
                if len(self.result) > most:
                    return Ended.OVERSIZE
        return Ended.EXIT


if __name__ == "__main__":
    main()

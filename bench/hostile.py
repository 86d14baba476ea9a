"""Cheap hostile and broken ``signal`` programs for ``bench.soak``, each with its proper verdicts.

A program tries one thing. If a wall raises an error, the program fails of it; if what it tries
succeeds, it goes on and returns the `HONEST` filter's result, so that a hole in a wall shows as a
score where a failure is due. Where several verdicts are proper, it depends on which wall or
limit the machine has, or on which of two limits comes first. None does harm if a wall is missing:
what they signal is their own parent, what they write is in the soak's own folder.

Does not cover whether each wall is proper: that is ``tests/evaluation``.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from engine.core import Failure

ERROR, TIMEOUT, MEMORY = Failure.ERROR, Failure.TIMEOUT, Failure.MEMORY
CRASH, OUTPUT = Failure.CRASH, Failure.OUTPUT

_TEMPLATE = """\
import ctypes, os, re, signal, socket, subprocess, sys, threading, time
import numpy as np

LEFT_BEHIND = {folder!r}


def run_signal_processing(noisy_signal, window_size=20):
{attempt}
    filtered = np.convolve(noisy_signal, np.full(window_size, 1 / window_size), "valid")
    return {{"filtered_signal": filtered}}
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hostile:
    """What a program tries, and its proper failures; None: it may have `HONEST`'s score."""

    name: str
    attempt: str
    proper: frozenset[Failure | None]

    def program(self, folder: str) -> str:
        """Return the program; what it writes, if it can, it writes in ``folder``."""
        return write(self.attempt, folder=folder)


def write(attempt: str, *, folder: str = "") -> str:
    """Return the honest filter with ``attempt`` in front of it."""
    return _TEMPLATE.format(attempt=textwrap.indent(attempt.strip("\n"), " " * 4), folder=folder)


HONEST = write("pass")


def _hostile(name: str, attempt: str, *proper: Failure | None) -> Hostile:
    return Hostile(name=name, attempt=textwrap.dedent(attempt), proper=frozenset(proper))


HOSTILE = (
    # Time.
    _hostile("endless loop", "while True: pass", TIMEOUT),
    _hostile("endless loop in C", "re.match('(a+)+$', 'a' * 64 + 'b')", TIMEOUT),
    _hostile(
        "signals ignored",
        """
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        while True: pass
        """,
        TIMEOUT,
    ),
    _hostile("sleep", "time.sleep(1000)", TIMEOUT),
    # Memory and results.
    _hostile("huge array", "x = np.ones(1 << 36)", MEMORY),
    _hostile(
        "growing list",
        """
        held = []
        while True: held.append(np.ones(1 << 21))
        """,
        MEMORY,
        TIMEOUT,
    ),
    _hostile("huge result", "return {'filtered_signal': np.zeros(1 << 22)}", OUTPUT),
    _hostile(
        "endless output",
        """
        while True: print('x' * 4096)
        """,
        TIMEOUT,
        ERROR,
        CRASH,
    ),
    _hostile(
        "not finite",
        "return {'filtered_signal': np.full(len(noisy_signal) - window_size + 1, np.nan)}",
        OUTPUT,
    ),
    _hostile(
        "not finite, numpy patched",
        """
        np.isfinite = lambda values: np.ones(np.shape(values), bool)
        return {'filtered_signal': np.full(len(noisy_signal) - window_size + 1, np.inf)}
        """,
        OUTPUT,
    ),
    _hostile("wrong length", "return {'filtered_signal': np.zeros(2)}", OUTPUT),
    _hostile("objects", "return {'filtered_signal': [object()] * len(noisy_signal)}", OUTPUT),
    _hostile("text", "return 'score: 1.0'", OUTPUT),
    _hostile("nothing", "return None", OUTPUT),
    # Ends.
    _hostile("exception", "raise ValueError('x' * 100_000)", ERROR),
    _hostile("sys.exit", "sys.exit(0)", ERROR),
    _hostile("os._exit", "os._exit(0)", CRASH),
    _hostile("segfault", "ctypes.string_at(0)", CRASH, ERROR),
    _hostile("abort", "os.abort()", CRASH),
    _hostile(
        "deep recursion",
        """
        def deeper(n): return deeper(n + 1)
        deeper(0)
        """,
        ERROR,
    ),
    _hostile(
        "deep recursion, no limit",
        """
        sys.setrecursionlimit(1 << 30)
        def deeper(n): return max(range(1), key=lambda _: deeper(n + 1))
        deeper(0)
        """,
        CRASH,
        MEMORY,
        ERROR,
        TIMEOUT,
    ),
    # Walls.
    _hostile("socket", "socket.socket().bind(('127.0.0.1', 0))", ERROR, CRASH),
    _hostile("new program", "subprocess.run(['/bin/true'], check=True)", ERROR, CRASH),
    _hostile("file", "open(f'{LEFT_BEHIND}/left-{os.getpid()}', 'w').write('x')", ERROR, CRASH),
    _hostile("file in its folder", "open('left', 'w').write('x')", None, ERROR, CRASH),
    _hostile("hidden signals", "import evaluators.signal.cases", ERROR, CRASH),
    _hostile("process list", "open(f'/proc/{os.getppid()}/cmdline').read()", ERROR, CRASH),
    _hostile("parent killed", "os.kill(os.getppid(), signal.SIGKILL)", ERROR, CRASH),
    # What is left behind; the program itself may be a good one.
    _hostile(
        "child left",
        """
        if os.fork() == 0:
            os.setsid()
            time.sleep(1000)
        """,
        None,
        ERROR,
        CRASH,
    ),
    _hostile(
        "threads left",
        """
        def spin():
            while True: pass
        for _ in range(4): threading.Thread(target=spin).start()
        """,
        None,
        ERROR,
        TIMEOUT,
        MEMORY,
    ),
    _hostile(
        "descriptors used up",
        """
        while True: os.dup(1)
        """,
        ERROR,
    ),
    _hostile(
        "state left",
        """
        import builtins
        np.convolve = builtins.len = None
        sys.modules['numpy'] = None
        """,
        ERROR,
        CRASH,
    ),
)

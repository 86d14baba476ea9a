"""Compiles a kernel, checks its products and times it: ``python evaluate.py FOLDER``.

Prints one JSON object. The score is how many times faster the kernel is than ``baseline.cpp``,
which is compiled and timed in the same evaluation, in turn with the kernel: the median of the
rounds' ratios. So a slow or busy machine slows down both.

The kernel runs in a process of its own, whose clock is not believed. This process's clock runs from
before the matrices can be seen until this process has a copy of the product, which is then compared
with NumPy's: so whatever of the kernel computes, has no other time. Each product is of new matrices
from a new seed, which this process's memory, closed to all others, does not tell. Each round has
new processes: when the baseline runs, nothing of the kernel does. A kernel of which something goes
on when its process has ended is refused, as it would slow down the baseline. The walls round this
process and the compiler's are the engine's.
"""

import ctypes
import json
import mmap
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
KERNEL = "kernel.cpp"
N = 240
ROUNDS = 15
TOLERANCE = 1e-9
"""Of one element, in absolute terms: the elements of ``a`` and ``b`` are between -1 and 1."""
COMPILE_SECONDS = 15.0
CALL_SECONDS = 2.0
FLAGS = ("-std=c++17", "-O3", "-march=native")
_SHOWN = 2000  # characters of what the compiler says
_SYSTEM = "/usr/"
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36  # of linux/prctl.h
_WALL = 0x40000000  # of linux/wait.h: children of every kind
# A kernel may say how its loops are unrolled, but not with which options it is compiled. Assembly
# could take in a file that no header check sees.
_REFUSED = re.compile(
    r"#\s*pragma\b(?!\s+GCC\s+(?:unroll|ivdep)\b).*"
    r"|\b(?:__)?(?:optimize|target|target_clones)(?:__)?\s*\("
    r"|\b(?:asm|__asm|__asm__)\b.*"
)
# What has the lines that follow pass for another file's.
_LINE_DIRECTIVE = re.compile(
    r"(?:^|\*/)[^\S\n]*(?:#|%:|\?\?=)(?:[^\S\n]|/\*.*?\*/)*(?:line\b|\d)", re.MULTILINE | re.DOTALL
)
_SPLICE = re.compile(r"\\[^\S\n]*\n")
_LINE_MARKER = re.compile(r'# \d+ "([^"]*)"')


class NotScored(Exception):
    """A kernel that gets no score: which failure it is, why, and what the compiler said."""

    def __init__(self, failure: str, reason: str, compiler: str = "") -> None:
        super().__init__(reason)
        self.failure = failure
        self.compiler = compiler[:_SHOWN]


def main(folder: Path) -> dict[str, object]:
    """Return what is printed of the kernel in ``folder``."""
    try:
        return _judged(folder)
    except NotScored as error:
        return {
            "error": str(error),
            "failure": error.failure,
            "artifacts": {"compiler": error.compiler} if error.compiler else {},
        }


def _judged(folder: Path) -> dict[str, object]:
    compiler = shutil.which("g++")
    if compiler is None:
        raise NotScored("error", "there is no g++ on the PATH; install a C++ compiler")
    scratch = folder.parent / "build"
    scratch.mkdir()
    _check_source(compiler, folder / KERNEL)
    programs = []
    for name, source in (("kernel", folder / KERNEL), ("baseline", HERE / "baseline.cpp")):
        program = scratch / name
        _compile(compiler, source, program)
        programs.append(program.read_bytes())  # a kernel could change the file
    kernel, baseline = programs
    _keep_watch()
    pairs = [(_seconds(baseline), _seconds(kernel)) for _ in range(ROUNDS)]
    ratios = sorted(slow / fast for slow, fast in pairs)
    quarter = len(ratios) // 4
    return {
        "score": median(ratios),
        "milliseconds": 1e3 * median(fast for _, fast in pairs),
        "baseline_milliseconds": 1e3 * median(slow for slow, _ in pairs),
        "spread": (ratios[-1 - quarter] - ratios[quarter]) / median(ratios),
    }


def _seconds(program: bytes) -> float:
    """Return the seconds of one product, made in a new process that is gone afterwards.

    Raises:
        NotScored: there is no such product, or something that the process started is left.
    """
    with Process(program) as process:
        process.multiply(*_matrices())  # finds its pages, and is not timed
        seconds = process.multiply(*_matrices())
    if _has_children():
        raise NotScored("rejected", "the kernel left processes behind")
    return seconds


def _keep_watch() -> None:
    """Adopt what is left of a process below this one when that ends, and close this one's memory.

    ``/proc`` shows a process's memory to all others of its user, unless the process forbids it.
    """
    prctl = ctypes.CDLL(None).prctl
    if prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) or prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError("this process can't watch a kernel that starts others, or reads its memory")


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG | _WALL)
    except ChildProcessError:
        return False
    return True


def _matrices() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng()  # of a new seed, which earlier matrices say nothing of
    return rng.uniform(-1, 1, (N, N)), rng.uniform(-1, 1, (N, N))


def _check_source(compiler: str, source: Path) -> None:
    """Refuse a kernel that includes more than the system's headers, or sets compiler options."""
    text = _SPLICE.sub("", source.read_text(encoding="utf-8", errors="replace"))
    if found := _LINE_DIRECTIVE.search(text):
        raise NotScored("rejected", f"a kernel may not have {' '.join(found[0].split())[:80]}")
    command = [compiler, *FLAGS, "-E", str(source)]
    preprocessed = _run(command, "does not preprocess")
    # All at once, since an attribute may go on in the next line.
    if found := _REFUSED.search("\n".join(_own_lines(preprocessed, source))):
        raise NotScored("rejected", f"a kernel may not have {' '.join(found[0].split())[:80]}")
    for path in _included(preprocessed):
        if path != source and not str(path).startswith(_SYSTEM):
            raise NotScored("rejected", f"a kernel may include the system's headers, not {path}")


def _own_lines(preprocessed: str, source: Path) -> Iterator[str]:
    own = False
    for line in preprocessed.splitlines():
        marker = _LINE_MARKER.match(line)
        if marker:
            own = marker[1] == str(source)
        elif own:
            yield line


def _included(preprocessed: str) -> set[Path]:
    names = {marker[1] for marker in _LINE_MARKER.finditer(preprocessed)}
    return {Path(os.path.realpath(name)) for name in names if not name.startswith("<")}


def _compile(compiler: str, source: Path, program: Path) -> None:
    command = [compiler, *FLAGS, "-o", str(program), str(HERE / "harness.cpp"), str(source)]
    _run(command, "does not compile")


def _run(command: list[str], failed: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=COMPILE_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise NotScored("timeout", f"the kernel {failed} in {COMPILE_SECONDS:g} s") from None
    if done.returncode:
        said = done.stderr
        errors = [line for line in said.splitlines() if "error" in line] or ["the compiler failed"]
        raise NotScored("error", f"the kernel {failed}: {errors[0].rpartition('/')[2]}", said)
    return done.stdout


class Process:
    """A compiled kernel's process, and the matrices that it shares with this one.

    Its files are in a folder of its own, which no earlier kernel has seen.
    """

    def __init__(self, program: bytes) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        file, shared = Path(self._folder.name, "kernel"), Path(self._folder.name, "matrices")
        file.write_bytes(program)
        file.chmod(0o700)
        shared.write_bytes(bytes(3 * N * N * 8))
        with shared.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), 0)
        self._matrices = np.frombuffer(self._shared, np.float64).reshape(3, N, N)
        self._process = subprocess.Popen(
            [file, shared], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        # Not to the end of its output, which what the kernel started may hold open.
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._folder.cleanup()

    def multiply(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        """Return the seconds of one product.

        Raises:
            NotScored: the process died, took too long, or the product is wrong.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._matrices[2] = np.nan
        began = time.perf_counter()  # before anything of the kernel can see the matrices
        self._matrices[:2] = a, b
        try:
            self._process.stdin.write(b"x")
        except BrokenPipeError:
            self._lost()
        ready, _, _ = select.select([self._process.stdout], [], [], CALL_SECONDS)
        product = self._matrices[2].copy()  # what is written to it from now on gains nothing
        seconds = time.perf_counter() - began
        if not ready:
            raise NotScored("timeout", f"one product took more than {CALL_SECONDS:g} s")
        if self._process.stdout.read(1) != b"x":
            self._lost()
        if not np.abs(product - a @ b).max() <= TOLERANCE:  # NaN is no product either
            raise NotScored("rejected", "the product is wrong")
        return seconds

    def _lost(self) -> NoReturn:
        try:
            code = self._process.wait(CALL_SECONDS)
        except subprocess.TimeoutExpired:
            raise NotScored("error", "the kernel answered something else") from None
        how = f"exited with code {code}" if code >= 0 else f"was killed by {_name(-code)}"
        raise NotScored("crash", f"the kernel's process {how}")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[-1]))))

"""The box server: a process that runs judges, each in a box of its own.

``python -m engine.evaluation.box``, started by ``judge_lane``. Like the zygote it leaves the
network, imports what judges and candidates import, stays single-threaded, and never runs a line of
an evaluator's or a candidate's code: that happens in the boxes that it forks (``native/box.cpp``).
`Attendant` opens, watches and ends them.

In a box the judge may read the libraries, the programs of the machine, and what its problem
declares. It writes in `SCRATCH` and nowhere else. A judge that is split from the program has its
program in a second process, behind the walls that candidates have.

Does not cover what the Python judges and their candidates say to each other: ``engine.judge``.
"""

import dataclasses
import os
import resource
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from engine.core import Judge, JudgeKind
from engine.core.bundle import files_of
from engine.evaluation import _native
from engine.evaluation._native import Role
from engine.evaluation.attendant import CHANNEL, READY, Attendant
from engine.evaluation.server import ServerSetup, die_first, read_setup
from engine.evaluation.zygote import begin, readable_paths, warm_up

SCRATCH = Path("/tmp")
"""The writable folder of a box, a private one of bounded size."""

_PROGRAMS = ("/usr", "/bin", "/sbin", "/etc/alternatives", sys.prefix, sys.base_prefix)
_FILES = (
    *("/dev/zero", "/dev/full", "/dev/random"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/os-release", "/etc/ld.so.conf"),
    *("/proc/meminfo", "/proc/stat", "/proc/sys/kernel", "/proc/sys/vm"),
    *("/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/fs/cgroup"),
)
_CAN_NOT_RUN = 127
_CHUNK = 1 << 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setup(ServerSetup):
    """What a box server has to know.

    Attributes:
        judge: the fields of the problem's `Judge`.
        folder: the problem's own, which judges may read, and where commands run.
        result: descriptor of the memory for what was seen of a run.
        scratch: the folder that is written in where the machine lets boxes have none of their own.
    """

    judge: dict[str, Any]
    folder: str
    result: int
    scratch: str


def main() -> None:
    """Serve programs until the connection ends; in a process of a box, be what it is for."""
    setup = Setup(**read_setup())
    die_first()
    judge = Judge(**{**setup.judge, "kind": JudgeKind(setup.judge["kind"])})
    refused = _native.enter_namespaces()  # now: a process with threads can't
    _native.die_with_parent(parent=setup.parent, signal=signal.SIGKILL)
    _native.adopt_orphans()
    shares = refused or _native.try_box_namespaces()  # why boxes share what is outside
    scratch = setup.scratch if shares else str(SCRATCH)
    _set_environment(Path(scratch))
    warm_up(setup.modules, [])
    libraries = readable_paths(hidden=[setup.folder])
    readable = [*readable_paths(*_PROGRAMS, setup.folder, *judge.readable), *_FILES]
    if not shares:
        readable.append("/proc")  # the box's own processes
    if judge.kind is not JudgeKind.COMMAND:
        readable.append(_shims())
    box = _native.Box(
        readable=readable,
        libraries=libraries,
        scratch=scratch,
        scratch_bytes=judge.scratch_mb << 20,
        memory_bytes=setup.memory_bytes,
        processes=judge.processes,
        cpu_seconds=int(setup.seconds) + 2,
        mounts=not refused,
    )
    missing = dict(box.missing_walls)
    with socket.socket(fileno=setup.connection) as connection:
        begin(connection, missing=missing, refused=refused, writes=shares)
        attendant = Attendant(
            connection,
            box,
            result=setup.result,
            is_split=judge.kind is JudgeKind.SPLIT,
            seconds=setup.seconds,
            memory_bytes=setup.memory_bytes,
            processes=judge.processes,
            watched=Path(setup.scratch) if "scratch" in missing else None,
            scratch_bytes=judge.scratch_mb << 20,
        )
        role = attendant.serve()
        if role is not Role.SERVER:
            connection.detach()  # its number means another file by now
            _live(role, judge, setup, Path(os.environ["TMPDIR"]))


def _shims() -> str:
    """Return the folder of the modules that stand for other systems' own."""
    from engine.judge.contracts import SHIMS

    return str(SHIMS)


def _set_environment(scratch: Path) -> None:
    """Have all of a box begin with the same environment, wherever its lane lives."""
    inherited = {key: os.environ[key] for key in os.environ if key.endswith("_NUM_THREADS")}
    os.environ.clear()
    os.environ.update(
        inherited,
        HOME=str(scratch),
        LANG="C.UTF-8",
        PATH=f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin",
        PYTHONDONTWRITEBYTECODE="1",
        PYTHONHASHSEED="0",
        PYTHONUNBUFFERED="1",
        PYTHONUTF8="1",
        TMPDIR=str(scratch),
    )


def _live(role: Role, judge: Judge, setup: Setup, scratch: Path) -> NoReturn:
    """Be the process of a box that ``role`` says; never returns."""
    try:
        if role is Role.CANDIDATE:
            from engine.judge.candidate import serve

            serve(CHANNEL)
            os._exit(0)
        os.write(READY, b"R")
        os.close(READY)
        program = _read_program().decode(errors="surrogatepass")
        folder = scratch / "program"
        _write_files(files_of(program, main=judge.file), folder)
        os.chdir(setup.folder)
        if judge.kind is JudgeKind.COMMAND:
            _run_command([*judge.command, str(folder)], setup.memory_bytes)
        _run_referee(judge, folder)
    except BaseException:  # whatever it is, this process must not go on as a second server
        traceback.print_exc()
    finally:
        os._exit(_CAN_NOT_RUN)


def _read_program() -> bytes:
    """Return what the server writes to the standard input, and leave that empty."""
    program = b"".join(iter(lambda: os.read(0, _CHUNK), b""))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return program


def _write_files(files: dict[str, str], folder: Path) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogatepass")


def _run_command(command: list[str], memory_bytes: int) -> NoReturn:
    """Become the command. The memory of this interpreter is none of its own."""
    for each in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(each, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]} can't be run: {error.strerror}\n".encode())
        os._exit(_CAN_NOT_RUN)


def _run_referee(judge: Judge, folder: Path) -> NoReturn:
    """Run a Python evaluator on the program, and end with its exit code."""
    from engine.judge.referee import run

    channel = CHANNEL if judge.kind is JudgeKind.SPLIT else None
    run(judge.setup, folder / judge.file, channel)
    os._exit(0)


if __name__ == "__main__":
    main()

"""Programs that try to get out of the box in which a command judge runs them."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from judges import MEBIBYTE, problem_of
from processes import children, command, descendants, eventually, lives
from verdicts import evaluate, walls_missing

import engine
from engine.core import Evaluation, Failure, Problem
from engine.evaluation import EvaluatorPool, open_pool

JUDGE = """
import runpy, sys
runpy.run_path(sys.argv[-1] + "/program.py")
"""
START = """
import ctypes, json, mmap, os, resource, signal, socket, subprocess, sys, threading, time
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
TMP = os.environ["TMPDIR"]


def call(*arguments):
    "Make a system call by its number, or one of the C library's functions."
    function, *rest = arguments
    if not callable(function):
        function, rest = libc.syscall, arguments
    result = function(*[ctypes.c_long(each) if isinstance(each, int) else each for each in rest])
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def end(score=1.0, **texts):
    print(json.dumps({"score": score, "artifacts": texts}), flush=True)


"""
PROCESSES, SCRATCH_MB, MEMORY_MB = 16, 16, 256

Attack = Callable[..., Evaluation]


@pytest.fixture(scope="module")
def boxed(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return problem_of(
        tmp_path_factory.mktemp("boxed"),
        JUDGE,
        seconds=8.0,
        memory_bytes=MEMORY_MB * MEBIBYTE,
        processes=PROCESSES,
        scratch_mb=SCRATCH_MB,
    )


@pytest.fixture(scope="module")
def boxes(boxed: Problem) -> Iterator[EvaluatorPool]:
    with open_pool(problem=boxed, workers=1) as pool:
        yield pool


@pytest.fixture(scope="module")
def missing(boxes: EvaluatorPool) -> set[str]:
    """The walls that this machine lacks."""
    return walls_missing(boxes)


def servers() -> list[int]:
    """Return the box servers that this process started."""
    return [each for each in children(os.getpid()) if b"engine.evaluation.box" in command(each)]


@pytest.fixture
def attack(boxes: EvaluatorPool, boxed: Problem) -> Attack:
    """Return a function that runs a program and checks what must hold after each one."""

    def run(text: str, **names: object) -> Evaluation:
        before = sorted(boxed.folder.rglob("*"))
        constants = "".join(f"{name} = {value!r}\n" for name, value in names.items())
        found = evaluate(boxes, START + constants + textwrap.dedent(text))
        honest = evaluate(boxes, START + "end(2.0, files=' '.join(sorted(os.listdir(TMP))))")
        assert honest.score == 2.0, honest
        (server,) = servers()
        # The first process of the next box, and its judge.
        assert eventually(lambda: len(descendants(server)) == 2), descendants(server)
        assert sorted(boxed.folder.rglob("*")) == before
        return found

    return run


@pytest.mark.parametrize(
    "bomb",
    [
        "while True: os.fork()",
        """
        while True:
            try: os.fork()
            except OSError: pass
        """,
        "while True:\n    if os.fork(): os._exit(0)",
        "subprocess.run(['sh', '-c', 'b() { b | b & }; b; sleep 60'])",
    ],
)
def test_a_fork_bomb_is_ended(attack: Attack, missing: set[str], bomb: str) -> None:
    release = tuple(int(each) for each in platform.release().split("-")[0].split(".")[:2])
    if "processes" in missing or (os.geteuid() == 0 and release < (6, 14)):
        pytest.skip("nothing but the watch bounds the number of processes here")
    found = attack(bomb)
    # Python's judge ends at once where it forks and exits; the rest ends with it.
    assert found.failure in (Failure.CRASH, Failure.MEMORY, Failure.OUTPUT), found


def test_threads_count_as_processes(attack: Attack) -> None:
    found = attack(
        "for _ in range(200): threading.Thread(target=time.sleep, args=(60,)).start()\nend()"
    )
    assert found.failure is Failure.CRASH
    assert found.message == f"it had more than {PROCESSES} processes and threads"


def test_it_may_have_the_processes_that_it_needs(attack: Attack, missing: set[str]) -> None:
    if "scratch" in missing:
        pytest.skip("this machine lacks the wall scratch: there is no /dev/shm for locks")
    found = attack(
        """
        from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
        if __name__ == "<run_path>":
            with ProcessPoolExecutor(2) as pool:
                squares = list(pool.map(abs, [-1, -2, -3]))
            with ThreadPoolExecutor(3) as pool:
                list(pool.map(abs, [1, 2]))
            text = subprocess.run(["sh", "-c", "echo $(ls | wc -l)"], capture_output=True)
            end(sum(squares), text=text.stdout.decode())
        """
    )
    assert found.score == 6.0, found


@pytest.mark.parametrize("place", ["/etc", "/var/tmp", "/usr/lib", "/dev", "/proc", "/sys", "HOME"])
def test_nothing_is_written_outside_the_scratch_folder(attack: Attack, place: str) -> None:
    folder = Path.home() if place == "HOME" else Path(place)
    mark = folder / f"brood-test-{os.getpid()}"
    found = attack("Path(MARK).write_text('x')", MARK=str(mark))
    assert found.failure is Failure.CRASH and "Error: [Errno" in found.message
    assert not mark.exists()


def test_the_evaluator_is_not_to_be_changed(
    attack: Attack, boxed: Problem, missing: set[str]
) -> None:
    if "mounts" in missing:
        pytest.skip("this machine lacks the wall mounts: files' modes and times are not kept")
    for change in (
        "(folder / 'judge.py').write_text('x')",
        "(folder / 'judge.py').unlink()",
        "(folder / 'new').mkdir()",
        "(folder / 'judge.py').rename(TMP + '/judge.py')",
        "(folder / 'judge.py').chmod(0o777)",
        "os.utime(folder / 'judge.py', (0, 0))",
        "os.link(folder / 'judge.py', TMP + '/judge.py')",
        "os.truncate(folder / 'judge.py', 0)",
        "(folder.parent / 'beside').mkdir(); end(3.0)",  # a folder of the scratch folder's own
    ):
        found = attack(f"folder = Path(FOLDER)\n{change}", FOLDER=str(boxed.folder))
        assert found.failure is Failure.CRASH or found.score == 3.0, (change, found)
    assert (boxed.folder / "judge.py").read_text() == JUDGE
    assert not (boxed.folder.parent / "beside").exists()


@pytest.mark.parametrize(
    "path", [Path(engine.__file__), Path.home() / ".bashrc", Path("/etc/shadow"), Path(__file__)]
)
def test_what_is_not_declared_is_not_read(attack: Attack, path: Path) -> None:
    if not path.exists():
        pytest.skip("there is no such file")
    found = attack("end(text=Path(PATH).read_text())", PATH=str(path))
    # A clone below /tmp is not there at all: a box has a /tmp of its own.
    said = ("PermissionError", "FileNotFoundError")
    assert found.failure is Failure.CRASH and any(each in found.message for each in said)


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_the_scratch_folder_is_bounded(attack: Attack, missing: set[str], folder: str) -> None:
    if "scratch" in missing:
        pytest.skip("this machine lacks the wall scratch")
    found = attack(
        """
        total = 0
        try:
            for number in range(64):
                with open(f"{FOLDER}/{number}", "wb", buffering=0) as file:
                    for _ in range(16): total += file.write(bytes(1 << 16))
        except OSError as error:
            end(total / (1 << 20), error=os.strerror(error.errno))
        """,
        FOLDER=folder,
    )
    assert found.score is not None and 0.9 * SCRATCH_MB < found.score <= SCRATCH_MB
    assert found.artifacts["error"] == "No space left on device"


def test_a_folder_that_grows_without_end_is_bounded(attack: Attack) -> None:
    for attempt in (
        "for number in range(100_000): Path(TMP, f'{number}').touch()",
        "for number in range(100): Path(TMP, f'{number}').write_bytes(bytes(1 << 20))",
    ):
        found = attack(attempt)
        assert found.failure is Failure.CRASH, found
        assert "No space left" in found.message or "MiB of files" in found.message


def test_the_next_program_finds_nothing(attack: Attack, boxes: EvaluatorPool) -> None:
    attack("Path(TMP, 'left').mkdir(mode=0); Path(TMP, 'link').symlink_to('/'); end()")
    count = START + "end(len(os.listdir(TMP)))"
    first = evaluate(boxes, count).score
    attack("Path(TMP, 'left').mkdir(mode=0); end()")
    assert evaluate(boxes, count).score == first


@pytest.mark.parametrize(
    "attempt",
    [
        "socket.create_connection(('127.0.0.1', PORT), 2)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))",
        "socket.socket(socket.AF_UNIX).connect(ABSTRACT)",
        "socket.socket(socket.AF_UNIX).connect('/run/dbus/system_bus_socket')",
        "a, b = socket.socketpair(); a.connect(ABSTRACT)",
        "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    ],
)
def test_there_is_no_network(attack: Attack, listeners: dict[str, object], attempt: str) -> None:
    names = {"PORT": listeners["TCP_PORT"], "ABSTRACT": listeners["ABSTRACT"]}
    found = attack(f"{attempt}\nend()", **names)
    assert found.failure is Failure.CRASH and "PermissionError: [Errno 1]" in found.message


@pytest.mark.parametrize(
    "attempt",
    [
        "subprocess.Popen(['sleep', '98765'], start_new_session=True)",
        """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0: os.execvp("sleep", ["sleep", "98765"])
            os._exit(0)
        """,
        """
        script = "trap '' TERM HUP INT; setsid sleep 98765 & sleep 98765"
        subprocess.Popen(["sh", "-c", script])
        """,
        "call(libc.prctl, 1, 0, 0, 0, 0); subprocess.Popen(['nohup', 'sleep', '98765'])",
    ],
)
def test_no_process_outlives_the_judge(attack: Attack, attempt: str) -> None:
    found = attack(textwrap.dedent(attempt) + "\nend()")
    assert found.score == 1.0, found
    assert not sleepers()


def sleepers() -> list[int]:
    """Return all processes of this machine that are such a sleep."""
    pids = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]
    return [pid for pid in pids if command(pid).split(b"\0")[-2:-1] == [b"98765"]]


@pytest.mark.parametrize(
    "attempt",
    [
        "while True: pass",
        """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.setsid()
        subprocess.run(["sleep", "98765"])
        """,
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        os.kill(os.getpid(), signal.SIGSTOP)
        """,
        """
        for _ in range(4): subprocess.Popen(["sleep", "98765"])
        time.sleep(60)
        """,
    ],
)
def test_time_is_over_for_all_of_it(attack: Attack, attempt: str) -> None:
    found = attack(attempt)
    assert found.failure is Failure.TIMEOUT, found
    assert not sleepers()


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        ("bytearray(1 << 30)", "MemoryError (memory limit 256 MiB)"),
        (
            """
            for _ in range(6):
                if os.fork() == 0:
                    kept = bytearray(b"x") * (80 << 20)
                    time.sleep(60)
            time.sleep(60)
            """,
            "its processes took too much memory (memory limit 256 MiB)",
        ),
        (
            """
            kept = [mmap.mmap(-1, 64 << 20) for _ in range(8)]
            for each in kept:
                for at in range(0, len(each), 4096): each[at] = 1
            time.sleep(60)
            """,
            "its processes took too much memory",
        ),
    ],
)
def test_memory_is_bounded_for_all_of_it_together(attack: Attack, attempt: str, words: str) -> None:
    found = attack(attempt)
    assert found.failure is Failure.MEMORY and words in found.message, found


def test_memory_that_processes_share_counts_once(attack: Attack) -> None:
    found = attack(
        """
        kept = bytearray(b"x") * (100 << 20)
        pids = [os.fork() for _ in range(2)]
        time.sleep(0.5)
        if 0 in pids: os._exit(0)
        end()
        """
    )
    assert found.score == 1.0, found


@pytest.mark.parametrize(
    "attempt",
    [
        "call(libc.unshare, 0x10000000)",
        "call(libc.mount, b'none', TMP.encode(), b'tmpfs', 0, 0)",
        "call(libc.umount2, TMP.encode(), 2)",
        "call(libc.chroot, TMP.encode())",
        "call(libc.ptrace, 16, 1, 0, 0)",
        "call(libc.memfd_create, b'x', 0)",
        "call(libc.shmget, 0, 4096, 0o1600)",
        "call(425, 1, ctypes.create_string_buffer(120))",
        "call(libc.setns, 0, 0)",
        "call(libc.pivot_root, TMP.encode(), TMP.encode())",
        "call(libc.personality, 0x0040000)",
        "call(libc.process_vm_readv, 1, 0, 0, 0, 0, 0)",
        "call(libc.open_by_handle_at, -100, bytes(16), 0)",
        "call(libc.semget, 0, 1, 0o1600)",
        "call(libc.msgget, 0, 0o1600)",
        "call(libc.mq_open, b'/x', 0o102, 0o600, None)",
        "call(libc.fanotify_init, 0, 0)",
        "call(libc.inotify_init1, 0)",
        "call(libc.vmsplice, 1, 0, 0, 0)",
        "call(libc.setgroups, 0, 0)",
        "call(428, -100, b'/', 0x8000)",  # open_tree
        "call(430, b'tmpfs', 0)",  # fsopen
        "call(438, 1, 1, 0)",  # pidfd_getfd
        "call(440, 1, 0, 0, 4, 0)",  # process_madvise
        "call(442, -1, b'/', 0x8000, bytes(32), 32)",  # mount_setattr
        "call(444, 0, 0, 1)",  # landlock_create_ruleset
        "call(447, 0)",  # memfd_secret
        "import fcntl, termios; fcntl.ioctl(1, termios.TIOCSTI, b'x')",
        "os.sched_setaffinity(0, {0, 1})",
        "os.nice(-5)",
        "resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3))",
        "os.setuid(12345)",
        "os.kill(TEST, 0)",
        "os.mknod(TMP + '/disk', 0o60600, os.makedev(8, 0))",
    ],
)
def test_it_has_no_rights_but_its_own(attack: Attack, attempt: str) -> None:
    found = attack(f"{attempt}\nend()", TEST=os.getpid())
    assert found.failure is Failure.CRASH
    assert any(f"[Errno {number}]" in found.message for number in (1, 3, 13)), found


def test_it_sees_its_own_processes_only(attack: Attack, missing: set[str]) -> None:
    if "processes" in missing:
        pytest.skip("this machine lacks the wall processes")
    found = attack("end(sum(each.isdigit() for each in os.listdir('/proc')))")
    assert found.score == 2.0


def test_a_limit_can_only_be_lowered(attack: Attack) -> None:
    found = attack("resource.setrlimit(resource.RLIMIT_DATA, (1 << 40, 1 << 40))\nend()")
    assert found.failure is Failure.CRASH


@pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler")
def test_a_program_is_compiled_and_run(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        os.chdir(TMP)
        Path("x.cpp").write_text('#include <iostream>\\nint main() { std::cout << 42; }')
        subprocess.run(["g++", "-O1", "-o", "x", "x.cpp"], check=True)
        end(float(subprocess.run(["./x"], capture_output=True).stdout))
        """
    )
    with open_pool(problem=problem_of(tmp_path, JUDGE, seconds=60.0), workers=1) as pool:
        found = evaluate(pool, START + program)
    assert found.score == 42.0, found


@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare")
def test_without_namespaces_of_its_own_a_box_writes_in_its_lanes_folder(tmp_path: Path) -> None:
    script = f"""
    import sys
    sys.path[:0] = {[str(each) for each in Path(__file__).parents[:2]]!r}
    from pathlib import Path
    from judges import problem_of
    from verdicts import evaluate
    from engine.evaluation import open_pool
    problem = problem_of(Path({str(tmp_path)!r}), {JUDGE!r}, seconds=60.0)
    text = "import json, os; tmp = os.environ['TMPDIR']; files = os.listdir(tmp);" + (
        "open(tmp + '/left', 'w'); print(json.dumps("
        "{{'score': 1.0, 'artifacts': {{'tmp': tmp, 'files': ' '.join(files)}}}}))"
    )
    with open_pool(problem=problem, workers=1) as pool:
        pool.check_walls(strict=False)
        for _ in range(2):
            found = evaluate(pool, text)
            print(found.artifacts.get("tmp"), found.artifacts.get("files"), found.message)
    """
    forbid = 'echo 0 > /proc/sys/user/max_pid_namespaces && exec "$@"'
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh"),
            *(sys.executable, "-c", textwrap.dedent(script)),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if "max_pid_namespaces" in done.stderr or done.stderr.startswith("unshare: "):
        pytest.skip(f"no namespace of one's own to try it in: {done.stderr}")
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        scratch, files, *said = line.split()
        assert "brood-workers-" in scratch and (files, said) == ("program", [])
    assert len(done.stdout.splitlines()) == 2


def test_nothing_is_left_when_the_engine_is_killed(tmp_path: Path, boxed: Problem) -> None:
    script = f"""
    import os, sys
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    from pathlib import Path
    from judges import problem_of
    from engine.evaluation import open_pool
    text = "import subprocess; subprocess.run(['setsid', 'sleep', '98765'])"
    problem = problem_of(Path({str(tmp_path)!r}), {JUDGE!r}, seconds=60.0)
    with open_pool(problem=problem, workers=1) as pool:
        pool.check_walls(strict=False)
        pool.submit(candidate_id="x", program=text)
        print("ready", flush=True)
        pool.completed(timeout=None)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    assert eventually(lambda: len(sleepers()) >= 1)
    below = descendants(process.pid)
    assert len(below) >= 4
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert eventually(lambda: not sleepers() and not any(map(command, below)))


def test_a_server_that_is_killed_is_replaced(boxes: EvaluatorPool) -> None:
    boxes.check_walls(strict=False)
    (server,) = servers()
    os.kill(server, signal.SIGKILL)
    assert evaluate(boxes, START + "end(5.0)").score == 5.0
    assert servers() != [server]


def test_a_box_that_is_killed_while_it_waits_is_replaced(boxes: EvaluatorPool) -> None:
    evaluate(boxes, START + "end()")
    (server,) = servers()
    assert eventually(lambda: len(descendants(server)) == 2)
    waiting = descendants(server)
    for each in waiting:
        with suppress(ProcessLookupError):  # the second ends with the first
            os.kill(each, signal.SIGKILL)
    assert eventually(lambda: not any(map(lives, waiting)))
    assert evaluate(boxes, START + "end(5.0)").score == 5.0
    assert servers() == [server]


def test_what_is_seen_is_json(boxes: EvaluatorPool) -> None:
    found = evaluate(boxes, START + "os.write(1, bytes(range(256)) * 99 + b'\\n'); end()")
    assert found.score == 1.0 and json.dumps(dict(found.artifacts))

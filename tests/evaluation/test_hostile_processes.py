"""Programs that start others, signal others, or end in a bad way."""

import platform

import pytest
from hostile import Check, Hostile, table

from engine.core import Failure

FORBIDDEN = "PermissionError: [Errno 1]"


def forbidden(name: str, attempt: str, words: str = FORBIDDEN) -> Hostile:
    return Hostile(name=name, attempt=attempt, words=words, wall="calls")


@table(
    forbidden("fork", "os.fork()"),
    forbidden("vfork", "call(libc.vfork)"),
    forbidden("clone3", "call(435, ctypes.create_string_buffer(88), 88)", "[Errno 38]"),
    forbidden("posix_spawn", "os.posix_spawn('/bin/true', ['true'], {})"),
    forbidden("subprocess", "import subprocess\nsubprocess.run(['/bin/true'])"),
    forbidden("a shell", "assert os.system('true') == 0", "AssertionError"),
    forbidden("popen", "os.popen('true').read()"),
    forbidden("a terminal", "import pty\npty.fork()", "Error: "),
    forbidden(
        "multiprocessing",
        """
        import multiprocessing
        process = multiprocessing.get_context('fork').Process(target=print)
        process.start()
        """,
    ),
    forbidden(
        "a process pool",
        """
        from concurrent.futures import ProcessPoolExecutor
        with ProcessPoolExecutor(1) as pool: pool.submit(len, 'x').result()
        """,
    ),
    forbidden("another program in its place", "os.execv('/bin/true', ['true'])"),
    forbidden("execveat", "call(libc.fexecve, 0, ctypes.c_void_p(), ctypes.c_void_p())", "Error: "),
    Hostile(
        name="a fork bomb",
        attempt="""
        while True:
            try: os.fork()
            except OSError: pass
        """,
        failure=Failure.TIMEOUT,
        wall="calls",
    ),
)
def test_it_starts_no_process(attack: Check, hostile: Hostile) -> None:
    attack(hostile)


@table(
    forbidden("the zygote killed", "os.kill(os.getppid(), signal.SIGKILL)"),
    forbidden("the zygote stopped", "os.kill(os.getppid(), signal.SIGSTOP)"),
    forbidden("the zygote asked whether it lives", "os.kill(os.getppid(), 0)"),
    forbidden("the engine killed", "os.kill(TEST, signal.SIGKILL)"),
    forbidden("the first process", "os.kill(1, 0)"),  # not killed, should the wall be missing
    forbidden("a thread of the zygote killed", "call(libc.tgkill, os.getppid(), os.getppid(), 9)"),
    forbidden("a signal to a descriptor of the zygote", "call(434, os.getppid(), 0)"),
    forbidden("a signal by descriptor", "call(424, 1, 9, ctypes.c_void_p(), 0)"),
    forbidden("a signal with a value", "call(libc.sigqueue, os.getppid(), 9, 0)"),
    forbidden(
        "a signal on output",
        """
        import fcntl
        fcntl.fcntl(1, fcntl.F_SETOWN, os.getppid())
        fcntl.fcntl(1, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(1, fcntl.F_SETFL, os.O_ASYNC)
        for _ in range(9): os.write(1, b'x')
        """,
    ),
    forbidden("the zygote traced", "call(libc.ptrace, 16, os.getppid(), 0, 0)"),
    forbidden(
        "the zygote's memory read", "call(libc.process_vm_readv, os.getppid(), 0, 0, 0, 0, 0)"
    ),
    forbidden("the engine's memory written", "call(libc.process_vm_writev, TEST, 0, 0, 0, 0, 0)"),
    forbidden(
        "the zygote's limits",
        "import resource\nresource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (3, 3))",
    ),
    forbidden("another session", "os.setsid()"),
    forbidden("another group", "os.setpgid(0, 0)"),
    forbidden("another user", "os.setuid(os.getuid())"),
    forbidden("another core", "os.sched_setaffinity(0, {0, 1})"),
    forbidden("another scheduler", "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"),
    forbidden("a better priority", "os.nice(-5)"),
    forbidden("a life beyond the zygote's", "call(libc.prctl, 1, 0, 0, 0, 0)"),
    forbidden("a memory dump allowed", "call(libc.prctl, 4, 1, 0, 0, 0)"),
    forbidden("a filter of its own", "call(SECCOMP, 1, 0, ctypes.c_void_p())"),
    forbidden("a rule set of its own", "call(444, ctypes.c_void_p(), 0, 1)"),
    forbidden("namespaces", "call(libc.unshare, 0x10000000)"),
    forbidden("a namespace of the engine", "call(libc.setns, 1, 0)"),
    forbidden("a mount", "call(libc.mount, b'none', FOLDER.encode(), b'tmpfs', 0, 0)"),
    forbidden("a file system", "call(430, b'tmpfs', 0)"),
    forbidden("io_uring", "call(425, 1, ctypes.create_string_buffer(120))"),
    forbidden("bpf", "call(BPF, 0, ctypes.create_string_buffer(120), 120)"),
    forbidden("keys", "call(KEYCTL, 0, -3, 0)"),
    forbidden("performance counters", "call(PERF, ctypes.create_string_buffer(120), 0, -1, -1, 0)"),
    forbidden("page faults in user space", "call(USERFAULTFD, 0)"),
    forbidden("the clock", "time.clock_settime(time.CLOCK_REALTIME, time.time())"),
    forbidden("the machine's name", "import socket\nsocket.sethostname(socket.gethostname())"),
    forbidden("a file by handle", "call(libc.open_by_handle_at, -100, bytes(16), 0)"),
    forbidden("a descriptor of the engine", "call(438, 1, 1, 0)"),
    forbidden("io_uring entered", "call(426, 1, 1, 1, 0, 0, 0)"),
    forbidden("the memory of a process dropped", "call(440, 1, 0, 0, 4, 0)"),
    forbidden("a dead process's memory taken", "call(448, 1, 0)"),
    forbidden("the handle of a file", "call(libc.name_to_handle_at, -100, b'/', 0, 0, 0)"),
    forbidden("another root by pivot", "call(PIVOT_ROOT, b'/', b'/')"),
    forbidden("a mount taken away", "call(libc.umount2, b'/proc', 2)"),
    forbidden("a tree of mounts", "call(428, -100, b'/', 0x8000)"),
    forbidden("a mount moved", "call(429, -1, b'', -1, b'', 4)"),
    forbidden("mounts made writable", "call(442, -1, b'/', 0x8000, bytes(32), 32)"),
    forbidden("another personality", "call(libc.personality, 0x0040000)"),
    forbidden(
        "threads of two processes compared", "call(KCMP, os.getpid(), os.getppid(), 0, 0, 0)"
    ),
    forbidden("a module of the kernel", "call(FINIT_MODULE, 0, b'', 0)"),
    forbidden("another kernel", "call(KEXEC_LOAD, 0, 0, 0, 0)"),
    forbidden("a reboot", "call(libc.reboot, 0)"),  # a command that does nothing but be allowed
    forbidden("the kernel's messages", "call(libc.klogctl, 3, bytes(16), 16)"),
    forbidden("accounting", "call(libc.acct, 0)"),
    forbidden("swapping", "call(libc.swapoff, b'/none')"),
    forbidden("files watched", "call(libc.inotify_init1, 0)"),
    forbidden("files watched by all", "call(libc.fanotify_init, 0, 0)"),
    forbidden("a timer of the kernel", "call(libc.timer_create, 0, 0, bytes(8))"),
    forbidden("a timer by descriptor", "call(libc.timerfd_create, 0, 0)"),
    forbidden("an event by descriptor", "call(libc.eventfd, 0, 0)"),
    forbidden("signals by descriptor", "call(libc.signalfd, -1, bytes(128), 0)"),
    forbidden("memory that nobody can see", "call(447, 0)"),
    forbidden("keys of memory", "call(libc.pkey_alloc, 0, 0)"),
    forbidden("pages moved", "call(MOVE_PAGES, os.getppid(), 0, 0, 0, 0, 0)"),
    forbidden("pages spliced", "call(libc.vmsplice, 1, 0, 0, 0)"),
    forbidden("a file sent", "call(libc.sendfile, 1, 4, 0, 8)"),
    forbidden("a program in memory", "call(EXECVEAT, 4, b'', 0, 0, 0x1000)"),
    forbidden("the capabilities", "call(libc.capset, bytes(8), bytes(24))"),
    forbidden("another group of users", "os.setgroups([0])"),
    forbidden("the disk's priority", "call(IOPRIO_SET, 1, 0, 0)"),
    forbidden(
        "a process that is called a thread",
        "call(libc.clone, ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0), bytes(65536), 0x100, 0)",
    ),
    forbidden(
        "a thread in a user namespace",
        "call(CLONE, 0x100 | 0x800 | 0x10000 | 0x10000000, 0, 0, 0, 0)",
    ),
    forbidden(
        "text put into the terminal", "import fcntl\nfcntl.ioctl(1, 0x541C, b'x')", "[Errno 25]"
    ),
    forbidden(
        "the terminal", "import fcntl, termios\nfcntl.ioctl(1, termios.TIOCSTI, b'x')", "[Errno 25]"
    ),
    Hostile(
        name="its group killed",
        attempt="os.killpg(0, signal.SIGKILL)",
        failure=Failure.CRASH,
        words="SIGKILL",
        wall="calls",
    ),
)
def test_it_reaches_nobody_else(attack: Check, hostile: Hostile) -> None:
    attack(hostile)


def crash(name: str, attempt: str, words: str, before: str = "") -> Hostile:
    return Hostile(name=name, attempt=attempt, words=words, before=before, failure=Failure.CRASH)


@table(
    crash("an exit as if all were well", "os._exit(0)", "exited with code 0 before a result"),
    crash("an exit", "os._exit(7)", "exited with code 7"),
    crash("an exit at import", "pass", "exited with code 0", before="os._exit(0)"),
    crash(
        "an exit in a thread",
        "threading.Thread(target=os._exit, args=(3,)).start()\ntime.sleep(1)",
        "code 3",
    ),
    crash("C's exit", "libc.exit(5)", "code 5"),
    crash("a null pointer", "ctypes.string_at(0)", "SIGSEGV"),
    crash("a wild write", "ctypes.memset(0xdead0000, 0, 8)", "SIGSEGV"),
    crash("abort", "os.abort()", "SIGABRT"),
    crash("memory freed twice", "libc.free(ctypes.c_void_p(id(values) + 1))", "SIGABRT"),
    crash("it kills itself", "os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    crash("it terminates itself", "signal.raise_signal(signal.SIGTERM)", "SIGTERM"),
    crash("an alarm", "signal.setitimer(signal.ITIMER_REAL, 0.01)\nwhile True: pass", "SIGALRM"),
    crash("a bus error", "signal.raise_signal(signal.SIGBUS)", "SIGBUS"),
    crash("a division by zero in C", "signal.raise_signal(signal.SIGFPE)", "SIGFPE"),
    crash(
        "its objects overwritten", "ctypes.memset(id(None), 0xff, 16)\nx = [None] * 9\ndel x", "SIG"
    ),
)
def test_a_dead_process_is_a_crash(attack: Check, hostile: Hostile) -> None:
    attack(hostile)


RUN_CODE = """
import mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex('{code}'))
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code for x86-64")
@table(
    crash("an illegal instruction", RUN_CODE.format(code="0f0b"), "SIGILL"),
    crash("a call of 32 bits", RUN_CODE.format(code="b802000000cd80c3"), "SIG"),
    crash("a call by x32's numbers", "call(0x40000000 + 57)", "SIG"),
    forbidden("a table of segments", "call(154, 1, bytes(16), 16)"),
    forbidden("the ports", "call(172, 3)"),
    forbidden("another place for thread variables", "call(158, 0x1002, 0)"),
    Hostile(
        name="a loop in machine code", attempt=RUN_CODE.format(code="ebfe"), failure=Failure.TIMEOUT
    ),
)
def test_machine_code(attack: Check, hostile: Hostile) -> None:
    attack(hostile)


def leaves(name: str, attempt: str, before: str = "") -> Hostile:
    return Hostile(name=name, attempt=attempt, before=before, failure=None)


@table(
    leaves("a thread", "threading.Thread(target=time.sleep, args=(1000,)).start()"),
    leaves(
        "a busy thread that can't be joined",
        """
        def spin():
            while True: pass
        threading.Thread(target=spin).start()
        """,
    ),
    leaves("a timer", "threading.Timer(1000, print).start()"),
    leaves("a signal to come", "signal.setitimer(signal.ITIMER_REAL, 1000)"),
    leaves("blocked signals", "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())"),
    leaves("a finalizer", "import weakref\nweakref.finalize(np, time.sleep, 1000)"),
    leaves(
        "an object whose end takes long",
        "double.kept = getattr(double, 'kept', None) or Slow()",
        before="class Slow:\n    def __del__(self): time.sleep(1000)\n",
    ),
    leaves(
        "threads that wake up again and again",
        """
        def wake():
            while True: time.sleep(0.001)
        for _ in range(4): threading.Thread(target=wake, daemon=True).start()
        """,
    ),
    leaves("a function for the end", "import atexit\natexit.register(time.sleep, 1000)"),
    leaves("open files", "for _ in range(20): os.dup(1)"),
    leaves("a position in a file", "os.lseek(4, 77, os.SEEK_SET)"),
    leaves(
        "flags of files",
        "import fcntl\nfor n in (1, 2, 5): fcntl.fcntl(n, fcntl.F_SETFL, os.O_NONBLOCK)",
    ),
    leaves("its result closed", "if offset == 0: os.closerange(4, 5)"),
)
def test_nothing_is_left_behind(attack: Check, hostile: Hostile) -> None:
    attack(hostile)

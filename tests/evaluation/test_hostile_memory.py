"""Programs that want more memory, stack or threads than they may have."""

from hostile import Check, Hostile, table

from engine.core import Failure

SMALL_THREADS = """
threading.stack_size(32 << 10)
for _ in range(500): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
while True: pass
"""


def greedy(name: str, attempt: str, before: str = "") -> Hostile:
    return Hostile(
        name=name,
        attempt=attempt,
        before=before,
        failure=Failure.MEMORY,
        words="(memory limit 256 MiB)",
    )


@table(
    greedy("one array", "np.ones(1 << 30)"),
    greedy("one array that it never touches", "np.empty(1 << 40)"),
    greedy("growing arrays", "kept = []\nwhile True: kept.append(np.empty(1 << 20))"),
    greedy("growing lists", "kept = []\nwhile True: kept.append([0] * 1000000)"),
    greedy("a bytearray", "bytearray(1 << 30)"),
    greedy("a string that doubles", "text = 'x'\nwhile True: text += text"),
    greedy("a set", "set(range(1 << 27))"),
    greedy("a huge number", "1 << (1 << 33)"),
    greedy("memory kept at import", "pass", before="kept = np.ones(1 << 26)"),
    greedy(
        "a map without a file",
        """
        import mmap
        try: mmap.mmap(-1, 1 << 30)
        except OSError as error: raise MemoryError(error) from error
        """,
    ),
    greedy(
        "maps of its own result",
        """
        import mmap
        kept = []
        try:
            while True: kept.append(mmap.mmap(4, 0))
        except OSError as error:
            del kept[:]
            assert error.errno == 24  # descriptors: each map holds one
            raise MemoryError from error
        """,
    ),
    greedy(
        "malloc",
        """
        libc.malloc.restype = ctypes.c_void_p
        while True:
            if not libc.malloc(1 << 20): raise MemoryError
        """,
    ),
    greedy("an output of too many dimensions", "return np.ones((1 << 15, 1 << 15)), 4"),
)
def test_memory_beyond_the_limit_is_refused(attack: Check, hostile: Hostile) -> None:
    assert attack(hostile).peak_bytes < 512 << 20


@table(
    Hostile(
        name="a limit raised",
        attempt="import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))",
        words="ValueError: not allowed to raise maximum limit",
        wall="calls",
    ),
    Hostile(name="memory locked", attempt="call(libc.mlockall, 3)", words="[Errno 1]"),
    Hostile(name="a memory file", attempt="os.memfd_create('x')", words="[Errno 1]", wall="calls"),
    Hostile(
        name="memory of System V",
        attempt="call(libc.shmget, 0, 1 << 30, 0o1600)",
        words="[Errno 1]",
        wall="calls",
    ),
    Hostile(
        name="shared memory",
        attempt="""
        from multiprocessing import shared_memory
        shared_memory.SharedMemory(name=MARK, create=True, size=1 << 30)
        """,
        words="Error: [Errno",
        wall="files",
    ),
    Hostile(
        name="a larger pipe",
        attempt="import fcntl\nfcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 28)",
        words="[Errno 1]",
        wall="calls",
    ),
    Hostile(
        name="threads",
        attempt="while True: threading.Thread(target=time.sleep, args=(9,)).start()",
        words="can't start new thread",
    ),
    Hostile(
        name="small threads",
        attempt=SMALL_THREADS,
        failure=Failure.CRASH,
        words="it had more than 64 threads",
    ),
    Hostile(
        name="small threads that print",
        attempt=SMALL_THREADS.replace("pass", "print('still here')"),
        failure=Failure.CRASH,
        words="it had more than 64 threads",
    ),
    Hostile(name="recursion", attempt="return double(values)", words="RecursionError"),
    Hostile(
        name="brackets too deep",
        attempt="eval('(' * 100000 + ')' * 100000)",
        words="SyntaxError",
    ),
    Hostile(
        name="memory refused for ever",
        attempt="""
        while True:
            try: np.ones(1 << 30)
            except MemoryError: pass
        """,
        failure=Failure.TIMEOUT,
    ),
    Hostile(
        name="recursion in C",
        attempt="""
        sys.setrecursionlimit(1 << 30)
        def deeper(_): return max([1], key=deeper)
        deeper(0)
        """,
        failure=Failure.CRASH,
        words="SIGSEGV",
    ),
    Hostile(
        name="a structure too deep to free",
        attempt="deep = None\nfor _ in range(100000): deep = (deep,)\ndel deep",
        failure=None,
    ),
)
def test_what_else_it_wants_is_refused(attack: Check, hostile: Hostile) -> None:
    attack(hostile)


def test_limits_hold_and_can_not_be_lifted(attack: Check) -> None:
    seen = attack(
        Hostile(
            name="limits",
            attempt="""
            import resource
            for name in ("CORE", "FSIZE", "NOFILE", "MEMLOCK", "CPU"):
                print(name, resource.getrlimit(getattr(resource, f"RLIMIT_{name}")))
            """,
            failure=None,
        )
    ).artifacts["stdout"]
    assert seen.splitlines()[:5] == [
        "CORE (1, 1)",  # 0 would let a program start that takes dumps
        "FSIZE (0, 0)",
        "NOFILE (64, 64)",
        "MEMLOCK (0, 0)",
        "CPU (11, 12)",  # a second more than it may take, and another one where it ignores SIGXCPU
    ]

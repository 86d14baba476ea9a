"""Programs that return something else than they should, or forge what they return."""

from hostile import Check, Hostile, table
from verdicts import evaluate

from engine.core import Failure
from engine.evaluation import EvaluatorPool

NAN_BYTES = "b'\\xff' * 80"


def broken(name: str, attempt: str, words: str, before: str = "") -> Hostile:
    return Hostile(name=name, attempt=attempt, words=words, before=before, failure=Failure.OUTPUT)


@table(
    broken(
        "too short", "return 2 * values[:2], 4", "double 0: doubled has shape (2,), expected (4,)"
    ),
    broken("too long", "return np.zeros(1 << 22), 4", "shape (4194304,)"),
    broken("too many dimensions", "return values[None], 4", "shape (1, 4)"),
    broken("a number for an array", "return 7, 4", "doubled has shape ()"),
    broken("an array for a number", "return 2 * values, values", "count has shape (4,)"),
    broken("one of two", "return 2 * values", "double 0: returned ndarray, expected a mapping"),
    broken("three of two", "return 2 * values, 4, 5", "3 values"),
    broken("a mapping that lacks one", "return {'doubled': 2 * values}", "no 'count'"),
    broken("a misspelt name", "return {'Doubled': 2 * values, 'count': 4}", "no 'doubled'"),
    broken("nothing", "return None", "NoneType"),
    broken("nothing in it", "return None, 4", "doubled is None"),
    broken("NaN", "return values * np.nan, 4", "doubled[0] is nan, expected finite"),
    broken("infinity", "return [1, 2, 3, float('inf')], 4", "doubled[3] is inf"),
    broken("NaN under a mask", "return np.ma.masked_array(values * np.nan, [1] * 4), 4", "is nan"),
    broken("complex numbers", "return values * 1j, 4", "complex128"),
    broken("objects", "return np.array([object()] * 4), 4", "dtype object"),
    broken("numbers as objects", "return np.array([1.0] * 4, dtype=object), 4", "dtype object"),
    broken("strings", "return ['a', 'b', 'c', 'd'], 4", "doubled holds list"),
    broken("numbers as strings", "return ['1', '2', '3', '4'], 4", "doubled holds list"),
    broken("bytes", "return b'1234', 4", "doubled holds bytes"),
    broken("a score", "return 'score: 1.0'", "returned str"),
    broken("dates", "return np.zeros(4, 'M8[s]'), 4", "datetime64"),
    broken("records", "return np.zeros(4, 'f8,f8'), 4", "doubled holds dtype"),
    broken("a generator", "return (v for v in values), 4", "generator"),
    broken("the function itself", "return double", "returned function"),
    broken("a ragged list", "return [[1], [2, 3], 4, 5], 4", "can't be read as an array"),
    broken("half a count", "return 2 * values, 4.5", "int64 can't hold"),
    broken("a count too large", "return 2 * values, 1e300", "int64 can't hold"),
    broken("a count beyond all integers", "return 2 * values, 2**64", "count"),
    broken("digits that get lost", "return [2**60 + 1] * 4, 4", "float64 can't hold"),
    broken(
        "an enormous view",
        "return np.lib.stride_tricks.as_strided(values, (1 << 40,), (0,)), 4",
        "shape (1099511627776,)",
    ),
    broken(
        "an array that lies about its shape",
        "return values[:2].view(Liar), 4",
        "shape (2,)",
        before="class Liar(np.ndarray):\n    shape = property(lambda self: (4,))\n",
    ),
    broken(
        "an object that makes an array of objects",
        "return Liar(), 4",
        "doubled holds Liar",
        before="class Liar:\n    def __array__(self, *_, **__): return np.array([None] * 4)\n",
    ),
    broken(
        "a tuple that lies about its length",
        "return Liar((2 * values,))",
        "",
        before="class Liar(tuple):\n    def __len__(self): return 3\n",
    ),
)
def test_what_breaks_the_contract_is_named(attack: Check, hostile: Hostile) -> None:
    attack(hostile)


def accepted(name: str, attempt: str, before: str = "") -> Hostile:
    return Hostile(name=name, attempt=attempt, before=before, failure=None)


@table(
    accepted(
        "more than asked for", "return {'doubled': 2 * values, 'count': 4, 'more': 'ignored'}"
    ),
    accepted("a list", "return [2 * float(v) for v in values], np.float32(4)"),
    accepted("fewer bits", "return (2 * values).astype('float32'), True * 4"),
    accepted("the argument, changed", "values *= 2\nreturn values, values.size"),
    accepted("backwards", "return (2 * values)[::-1].copy()[::-1], 4"),
    accepted("a mask", "return np.ma.masked_array(2 * values, [True] * 4), 4"),
    accepted(
        "an array with methods of its own",
        "return (2 * values).view(Own), 4",
        before="class Own(np.ndarray):\n    def astype(self, *_): raise SystemExit\n"
        "    def tobytes(self, *_): raise SystemExit\n",
    ),
)
def test_what_keeps_the_contract_scores(attack: Check, hostile: Hostile) -> None:
    assert attack(hostile).metrics == {"score": 1.0, "error": 0.0}


@table(
    Hostile(
        name="a conversion that raises",
        attempt="return Trap(), 4",
        before="class Trap:\n    def __array__(self, *_, **__): sys.exit(1)\n",
        words="SystemExit: 1",
    ),
    Hostile(
        name="a conversion that never ends",
        attempt="return Trap(), 4",
        before="class Trap:\n    def __array__(self, *_, **__):\n        while True: pass\n",
        failure=Failure.TIMEOUT,
    ),
    Hostile(
        name="an array that is not there",
        attempt="return Trap(), 4",
        before="class Trap:\n    __array_interface__ = "
        "{'shape': (4,), 'typestr': '<f8', 'data': (64, True), 'version': 3}\n",
        failure=Failure.CRASH,
        words="SIGSEGV",
    ),
    Hostile(
        name="a view outside of its memory",
        attempt="return np.lib.stride_tricks.as_strided(values, (4,), (1 << 40,)), 4",
        failure=Failure.CRASH,
        words="SIGSEGV",
    ),
)
def test_an_array_that_is_a_trap(attack: Check, hostile: Hostile) -> None:
    attack(hostile)


FORGE = """
def forge(data, length=None, done=b"V"):
    "Write a result as the sandbox does, say that it is complete, and wait."
    memory = (ctypes.c_char * 4096).from_address(
        libc_mmap(None, 4096, 3, 1, 4, 0)
    )
    length = len(data) if length is None else length
    ctypes.memmove(ctypes.addressof(memory), length.to_bytes(8, "little") + data, 8 + len(data))
    if done: os.write(5, done)
    time.sleep(9)

libc_mmap = libc.mmap
libc_mmap.restype = ctypes.c_void_p
libc_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
"""


def forged(name: str, attempt: str, words: str = "malformed") -> Hostile:
    return broken(name, attempt, words, before=FORGE)


@table(
    forged("no bytes", "forge(b'')"),
    forged("no arrays", "forge(b'V')", "has 0 bytes, expected 32"),
    forged("a byte too few", "forge(b'V' + bytes(79))", "has 7 bytes, expected 8"),
    forged("a byte too many", "forge(b'V' + bytes(81))", "1 bytes too many"),
    forged("a huge length", "forge(b'V' + bytes(80), 2**64 - 1)", "bytes too many"),
    forged("a negative length", "forge(b'V' + bytes(80), 2**63)", "bytes too many"),
    forged("a length of nothing", "forge(b'V' + bytes(80), 0)"),
    forged("NaN", f"forge(b'V' + {NAN_BYTES})", "doubled[0] is nan, expected finite"),
    forged(
        "NaN with a message in it",
        "forge(b'V' + np.uint64(0x7ff8dead00000000).tobytes() * 10)",
        "doubled[0] is nan",
    ),
    forged("a result after its end", "os.write(5, b'V')\nforge(b'V' + bytes(81))", ""),
    forged("an unknown tag", "forge(b'X' + bytes(80))"),
    forged("a failure without a kind", "forge(b'F')"),
    forged("a failure of no kind", "forge(b'Fnonsense\\0a\\0b')"),
    forged("a failure that is not its own to claim", "forge(b'Frejected\\0a\\0b')"),
    forged("a failure with a text too many", "forge(b'Ferror\\0a\\0b\\0c')"),
    forged("a failure that is no text", "forge(b'F' + bytes(range(256)))"),
    forged("an end without a result", "os.write(5, b'V')\ntime.sleep(9)"),
    forged("an end of no kind", "os.write(5, b'?')\ntime.sleep(9)"),
    forged("ends without end", "while True: os.write(5, bytes(1 << 16))"),
    forged("a pickle", "import pickle\nforge(b'V' + pickle.dumps(os.getpid))", "expected"),
    Hostile(
        name="a result without an end",
        attempt="forge(b'V' + bytes(80), done=b'')",
        before=FORGE,
        failure=Failure.TIMEOUT,
    ),
    Hostile(
        name="the way to the end closed",
        attempt="os.close(5)",
        failure=Failure.CRASH,
        words="exited with code 70",
    ),
    Hostile(name="the result closed", attempt="os.closerange(4, 5)", failure=None),
    Hostile(name="the output closed", attempt="os.closerange(1, 3)", failure=None),
    Hostile(name="the result cut", attempt="os.ftruncate(4, 0)", words="[Errno 1]"),
    Hostile(name="the result longer", attempt="os.ftruncate(4, 1 << 30)", words="[Errno 1]"),
    Hostile(
        name="the result sealed", attempt="import fcntl\nfcntl.fcntl(4, 1033, 8)", words="[Errno 1]"
    ),
    Hostile(
        name="a hole in the result",
        attempt="call(libc.fallocate, 4, 3, 0, 4096)",
        words="[Errno 1]",
    ),
    Hostile(name="the result locked", attempt="import fcntl\nfcntl.lockf(4, 2)", words="[Errno 1]"),
    Hostile(name="the input read again", attempt="os.read(3, 1)", words="[Errno 9]"),
)
def test_a_forged_result_is_a_failure(attack: Check, hostile: Hostile) -> None:
    attack(hostile)


def test_forged_arrays_say_no_more_than_returned_ones(attack: Check) -> None:
    honest = """
    count = np.int64(4).tobytes()
    first, second = np.array([2.0, 4, 6, 8]).tobytes(), np.array([1.0, 0, -1, 3]).tobytes()
    forge(b'V' + first + count + second + count)
    """
    attack(Hostile(name="forged", attempt=honest, before=FORGE, failure=None))


def test_writing_on_after_the_end_changes_nothing_or_fails(pool: EvaluatorPool) -> None:
    writing_on = Hostile(
        name="writing on",
        attempt="os.write = then_spoil",
        before="""
        import mmap
        write = os.write
        def then_spoil(fd, data):
            write(fd, data)
            memory = mmap.mmap(4, 0)
            while True: memory[:] = b'\\xff' * len(memory)
        """,
    )
    for _ in range(20):
        evaluation = evaluate(pool, writing_on.program({}))
        assert evaluation.score == 1.0 or evaluation.failure is Failure.OUTPUT, evaluation

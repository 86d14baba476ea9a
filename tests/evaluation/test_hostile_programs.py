"""Broken and hostile programs, one property each; one worker sees them all in turn."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.core import Evaluation, Failure
from engine.evaluation import EvaluatorPool

GOOD = """
def double(values, offset=0.0):
    return 2 * values + offset, len(values)
"""


SLEEP = "while True: time.sleep(1)"


def program(body: str, before: str = "") -> str:
    """Return a program whose function has ``body``, with the usual imports."""
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return f"import os, sys\nimport numpy as np\n{before}\ndef double(values, offset=0.0):\n{lines}"


def assert_failure(evaluation: Evaluation, failure: Failure, *words: str) -> None:
    assert evaluation.score is None
    assert evaluation.failure is failure, evaluation
    assert "\n" not in evaluation.message
    for word in words:
        assert word in evaluation.message


@pytest.mark.parametrize(
    "body",
    [
        "return {'doubled': 2 * values, 'count': 4, 'more': 'ignored'}",
        "return 2 * values, 4",
        "return [2 * float(v) for v in values], np.float32(4)",
        "return (2 * values).astype('float32'), True * 4",
        "values *= 2\nreturn values, values.size",
    ],
)
def test_a_valid_program_scores(pool: EvaluatorPool, body: str) -> None:
    evaluation = pool.evaluate(program(body))
    assert evaluation.failure is None, evaluation
    assert evaluation.score == 1.0
    assert evaluation.metrics == {"score": 1.0, "error": 0.0}
    assert evaluation.message == ""
    assert 0 < evaluation.seconds < 1
    assert evaluation.peak_bytes > 1 << 20


def test_the_libraries_can_be_used(pool: EvaluatorPool) -> None:
    text = program(
        "assert signal.medfilt(values).shape == (4,)\nreturn twice(values), 4",
        before="import numba\nfrom scipy import signal\n"
        "@numba.njit\ndef twice(values):\n    return 2 * values\n",
    )
    assert pool.evaluate(text).score == 1.0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return 2 * values[:2], 4", ["double 0: doubled has shape (2,), expected (4,)"]),
        ("return 2 * values", ["double 0", "ndarray", "doubled, count"]),
        ("return 2 * values, 4, 5", ["3 values"]),
        ("return {'doubled': 2 * values}", ["no 'count'"]),
        ("return {'Doubled': 2 * values, 'count': 4}", ["no 'doubled'"]),
        ("return None", ["NoneType"]),
        ("return None, 4", ["doubled is None"]),
        ("return values * np.nan, 4", ["doubled[0] is nan, expected finite"]),
        ("return [1, 2, 3, float('inf')], 4", ["doubled[3] is inf"]),
        ("return values * 1j, 4", ["complex128"]),
        ("return np.array([object()] * 4), 4", ["object"]),
        ("return ['a', 'b', 'c', 'd'], 4", ["list"]),
        ("return (v for v in values), 4", ["generator"]),
        ("return [[1], [2, 3], 4, 5], 4", ["can't be read as an array"]),
        ("return 2 * values, 4.5", ["count", "int64 can't hold"]),
        ("return 2 * values, 1e300", ["int64 can't hold"]),
        ("return [2**60 + 1] * 4, 4", ["float64 can't hold"]),
        ("return 2 * values, 2**64", ["count"]),
        ("return np.zeros((1 << 22,)), 4", ["shape (4194304,)"]),
    ],
)
def test_what_breaks_the_contract_is_named(
    pool: EvaluatorPool, body: str, words: list[str]
) -> None:
    assert_failure(pool.evaluate(program(body)), Failure.OUTPUT, *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def double(values:\n    return 1", ["line 1: SyntaxError: "]),
        ("x = 1\n\nx = foo", ["line 3: NameError: name 'foo' is not defined"]),
        ("", ["defines no function 'double'"]),
        ("double = 3", ["defines no function 'double'"]),
        ("def double():\n    return 1", ["TypeError"]),
        ("x = 1\0", ["null bytes"]),
        ("x = '\ud800'", ["UnicodeEncodeError"]),
        ("x = " + "(" * 5000 + ")" * 5000, ["SyntaxError"]),
        (program("sys.exit(0)"), ["line 5: SystemExit: 0"]),
        (program("raise KeyboardInterrupt"), ["KeyboardInterrupt"]),
        (program("return double(values)"), ["RecursionError"]),
        (program("raise E", before="class E(BaseException):\n    pass"), ["line 6: E"]),
        (program("open('x', 'w').write('x' * 10000)"), ["File too large"]),
        (
            program(
                "raise E",
                before="class E(Exception):\n    def __str__(self):\n        raise SystemExit",
            ),
            ["E"],
        ),
    ],
)
def test_an_exception_is_an_error(pool: EvaluatorPool, text: str, words: list[str]) -> None:
    assert_failure(pool.evaluate(text), Failure.ERROR, *words)


def test_the_traceback_shows_the_programs_own_lines(pool: EvaluatorPool) -> None:
    evaluation = pool.evaluate(program("return helper()", before="def helper():\n    return foo"))
    assert evaluation.message == "line 4: NameError: name 'foo' is not defined"
    trace = evaluation.artifacts["traceback"]
    assert "return helper()" in trace and "return foo" in trace
    assert "engine" not in trace


@pytest.mark.parametrize(
    "text",
    [
        "while True: pass",
        program("while True: pass"),
        program(
            "for number in range(1, 65):\n"
            "    try: signal.signal(number, signal.SIG_IGN)\n"
            "    except (OSError, ValueError): pass\n"
            "while True:\n"
            "    try:\n"
            "        while True: pass\n"
            "    except BaseException: pass",
            before="import signal",
        ),
        program("os.kill(os.getpid(), 19)"),  # SIGSTOP
        program("os.kill(os.getppid(), 19)\nwhile True: pass"),
    ],
    ids=["at import", "in the call", "ignoring signals", "stopped", "stopped fork server"],
)
def test_an_endless_program_is_stopped_in_time(pool: EvaluatorPool, text: str) -> None:
    start = time.monotonic()
    evaluation = pool.evaluate(text)
    assert_failure(evaluation, Failure.TIMEOUT, "limit of 1 s")
    assert evaluation.seconds >= 1
    assert time.monotonic() - start < 10


def test_endless_printing_is_stopped_and_its_end_kept(pool: EvaluatorPool) -> None:
    evaluation = pool.evaluate(program("while True: print('again and again')"))
    assert_failure(evaluation, Failure.TIMEOUT)
    assert "again and again" in evaluation.artifacts["stdout"]
    assert len(evaluation.artifacts["stdout"]) <= 2048


def test_printed_output_is_an_artifact(pool: EvaluatorPool) -> None:
    evaluation = pool.evaluate(
        program("print('seen', '\\x1b[2J')\nprint('too', file=sys.stderr)\nreturn 2 * values, 4")
    )
    assert evaluation.failure is None
    assert evaluation.artifacts["stdout"].startswith("seen \N{REPLACEMENT CHARACTER}[2J\ntoo\n")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os._exit(0)", ["code 0"]),
        ("os._exit(7)", ["code 7"]),
        ("ctypes.string_at(0)", ["SIGSEGV"]),
        ("os.kill(os.getpid(), 9)", ["SIGKILL"]),
        ("os.abort()", ["SIGABRT"]),
    ],
)
def test_a_dead_process_is_a_crash(pool: EvaluatorPool, body: str, words: list[str]) -> None:
    evaluation = pool.evaluate(program(body, before="import ctypes"))
    assert_failure(evaluation, Failure.CRASH, *words)


@pytest.mark.parametrize(
    "body",
    [
        "return np.ones(1 << 30), 4",
        "kept = []\nwhile True: kept.append(np.ones(1 << 20))",
        "while True: store.append([0] * 1000000)",
        "import mmap\ntry: mmap.mmap(-1, 1 << 30)\nexcept OSError: raise MemoryError",
    ],
)
def test_memory_beyond_the_limit_is_refused(pool: EvaluatorPool, body: str) -> None:
    evaluation = pool.evaluate(program(body, before="store = []"))
    assert_failure(evaluation, Failure.MEMORY, "256 MiB")
    assert evaluation.peak_bytes < 1 << 30


@pytest.mark.parametrize(
    ("result", "failure"),
    [
        ("b'V'", Failure.OUTPUT),
        ("b'V' + bytes(79)", Failure.OUTPUT),
        ("b'V' + bytes(81)", Failure.OUTPUT),
        ("b'V' + b'\\xff' * 80", Failure.OUTPUT),
        ("b'F'", Failure.OUTPUT),
        ("b'Fnonsense\\0a\\0b'", Failure.OUTPUT),
        ("b'Frejected\\0a\\0b'", Failure.OUTPUT),
        ("b'Ferror\\0a\\0b\\0c'", Failure.OUTPUT),
        ("b'X' * 80", Failure.OUTPUT),
        ("b''", Failure.CRASH),
    ],
)
def test_a_forged_result_is_a_failure(pool: EvaluatorPool, result: str, failure: Failure) -> None:
    evaluation = pool.evaluate(program(f"os.write(3, {result})\nos._exit(0)"))
    assert_failure(evaluation, failure)


def test_a_forged_result_without_end_is_stopped(pool: EvaluatorPool) -> None:
    evaluation = pool.evaluate(program("while True: os.write(3, bytes(1 << 16))"))
    assert_failure(evaluation, Failure.OUTPUT, "larger than its contract")
    assert evaluation.seconds < 1


def test_forged_arrays_say_no_more_than_returned_ones(pool: EvaluatorPool) -> None:
    evaluation = pool.evaluate(program("os.write(3, b'V' + bytes(80))\nos._exit(0)"))
    assert evaluation.failure is None
    assert evaluation.score is not None and evaluation.score < 1


def test_a_patched_library_does_not_reach_the_next_program(pool: EvaluatorPool) -> None:
    patch = "np.ones = None\nnp.pi = 3\nos.getpid = None\nsys.modules['scipy'] = None"
    pool.evaluate(program("return 2 * values, 4", before=patch))
    after = "from scipy import signal\nassert np.pi > 3.1\nassert os.getpid() > 0\nnp.ones(3)"
    assert pool.evaluate(program("return 2 * values, 4", before=after)).score == 1.0


def test_random_numbers_start_alike_for_every_program(pool: EvaluatorPool) -> None:
    text = program(
        "print(np.random.rand(), random.random())\nreturn 2 * values, 4", "import random"
    )
    first, second = (pool.evaluate(text).artifacts["stdout"] for _ in range(2))
    assert first == second != ""


@pytest.mark.parametrize("detach", ["", "os.setsid()\nif os.fork(): os._exit(0)\n"])
def test_a_process_left_behind_is_killed(pool: EvaluatorPool, detach: str) -> None:
    tell = "print(os.getpid())\nos.write(write, b'.')\n"
    left = "".join(f"    {line}\n" for line in f"{detach}{tell}{SLEEP}".splitlines())
    body = (
        f"read, write = os.pipe()\nif os.fork() == 0:\n{left}os.read(read, 1)\nreturn 2 * values, 4"
    )
    evaluation = pool.evaluate(program(body, before="import time"))
    assert evaluation.failure is None, evaluation
    pids = [int(line) for line in evaluation.artifacts["stdout"].split()]
    assert len(pids) == 2  # one for each case
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_fork_bomb_ends_with_its_program(
    pool: EvaluatorPool, processes_of: Callable[[str], list[int]]
) -> None:
    before = len(processes_of("engine.evaluation.worker"))
    bomb = "end = time.monotonic() + 0.2\nwhile time.monotonic() < end: os.fork()\nwhile True: pass"
    evaluation = pool.evaluate(program(bomb, before="import time"))
    assert evaluation.failure in (Failure.TIMEOUT, Failure.ERROR)
    assert pool.evaluate(GOOD).score == 1.0
    assert len(processes_of("engine.evaluation.worker")) == before


def test_a_program_that_kills_its_fork_server_crashes(pool: EvaluatorPool) -> None:
    evaluation = pool.evaluate(program("os.kill(os.getppid(), 9)\nreturn 2 * values, 4"))
    assert_failure(evaluation, Failure.CRASH, "lost 2 times")
    assert pool.evaluate(GOOD).score == 1.0


def test_a_program_can_not_lift_its_limits(pool: EvaluatorPool) -> None:
    body = """
for name in ("CORE", "FSIZE"):
    print(name, resource.getrlimit(getattr(resource, f"RLIMIT_{name}")))
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
print("room", hard - used <= 1 << 28, resource.getrlimit(resource.RLIMIT_CPU))
print([line for line in open("/proc/self/status") if line.startswith("NoNewPrivs")])
return 2 * values, 4"""
    seen = pool.evaluate(program(body, before="import resource")).artifacts["stdout"]
    assert seen.startswith("CORE (0, 0)\nFSIZE (0, 0)\nroom True (2, 2)\n['NoNewPrivs:\\t1\\n']\n")


def test_a_program_sees_neither_our_environment_nor_our_files(pool: EvaluatorPool) -> None:
    os.environ["BROOD_TEST_SECRET"] = "secret"
    body = "print(sorted(os.environ), os.listdir('/proc/self/fd'))\nreturn 2 * values, 4"
    try:
        seen = pool.evaluate(program(body)).artifacts["stdout"]
    finally:
        del os.environ["BROOD_TEST_SECRET"]
    assert "OMP_NUM_THREADS" in seen and "SECRET" not in seen
    assert "['0', '1', '2', '3', '4']" in seen  # 4 is the listing's own


@pytest.mark.parametrize(
    ("count", "failure", "message"),
    [
        (98, Failure.REJECTED, "a count of 98 is not allowed"),
        (99, Failure.ERROR, "evaluator: ZeroDivisionError: a bug in the evaluator"),
        (100, Failure.ERROR, "evaluator: the score is nan"),
    ],
)
def test_the_scorer_has_the_last_word(
    pool: EvaluatorPool, count: int, failure: Failure, message: str
) -> None:
    evaluation = pool.evaluate(program(f"return 2 * values, {count}"))
    assert evaluation.failure is failure
    assert evaluation.message == message

"""Programs that would run for ever, each in its own way; and lies about how long it took."""

import dataclasses
from collections.abc import Mapping, Sequence

import pytest
from hostile import Check, Hostile, table

from engine.core import SECONDS, Failure, Outputs, Problem, Stage
from engine.evaluation import EvaluatorPool


def endless(name: str, attempt: str, before: str = "") -> Hostile:
    return Hostile(
        name=name,
        attempt=attempt,
        before=before,
        failure=Failure.TIMEOUT,
        words="ran longer than the limit of 0.5 s",
    )


@table(
    endless("a loop in Python", "while True: pass"),
    endless("a loop at import", "pass", before="while True: pass"),
    endless("a loop in C", "sum(iter(int, 1))"),
    endless("a regular expression", "import re\nre.match('(a+)+$', 'a' * 64 + 'b')"),
    endless("a huge power", "3 ** 10**9"),
    endless("a huge convolution", "np.convolve(np.ones(1 << 21), np.ones(1 << 20))"),
    endless("a C function that keeps the GIL", "ctypes.PyDLL(None).pause()"),
    endless("sleep", "time.sleep(1000)"),
    endless(
        "all signals ignored",
        """
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        while True: pass
        """,
    ),
    endless(
        "all signals blocked",
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True: pass
        """,
    ),
    endless(
        "a timer that goes on",
        """
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        while True: signal.pause()
        """,
    ),
    endless(
        "every exception caught",
        """
        while True:
            try:
                while True: raise KeyboardInterrupt
            except BaseException: pass
        """,
    ),
    endless("it stops itself", "os.kill(os.getpid(), signal.SIGSTOP)"),
    endless("a deadlock", "lock = threading.Lock()\nlock.acquire()\nlock.acquire()"),
    endless(
        "a loop in a thread that it waits for",
        "thread = threading.Thread(target=spin)\nthread.start()\nthread.join()",
        before="def spin():\n    while True: pass\n",
    ),
    endless(
        "an exception whose text never ends",
        "raise Slow",
        before="class Slow(Exception):\n    def __str__(self):\n        while True: pass\n",
    ),
    endless("endless output", "while True: print('again and again')"),
    endless("endless errors", "while True: os.write(2, bytes(1 << 16))"),
    endless(
        "nothing but new exceptions", "while True:\n    try: 1 / 0\n    except Exception: pass"
    ),
)
def test_it_is_stopped_in_time(attack: Check, hostile: Hostile) -> None:
    evaluation = attack(hostile)
    assert 0.5 <= evaluation.seconds < 1.5


def test_the_end_of_endless_output_is_kept(attack: Check) -> None:
    evaluation = attack(endless("counting", "n = 0\nwhile True:\n    n += 1\n    print(n)"))
    text = evaluation.artifacts["stdout"]
    numbers = [int(line) for line in text.splitlines()[1:-1]]
    assert len(text) <= 2048 and numbers == list(range(numbers[0], numbers[-1] + 1))


def seconds_of(problem: Problem) -> Problem:
    """Return ``problem`` with isolated cases and the seconds of each as a metric."""

    def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
        measured = [float(each[SECONDS]) for each in outputs]
        return {"score": 1.0, "first": measured[0], "second": measured[1]}

    stage = Stage(name="full", cases=problem.cases, score=score)
    return dataclasses.replace(problem, isolate_cases=True, stages=(stage,))


def test_seconds_are_the_sandboxs_own(quick: Problem) -> None:
    replaced = Hostile(
        name="time replaced",
        attempt="if values[0] == 1: sleep(0.2)",
        before="""
        from time import sleep
        for name in dir(time):
            if callable(getattr(time, name)): setattr(time, name, lambda *_: 0.0)
        """,
    )
    with EvaluatorPool(problem=seconds_of(quick), workers=1) as pool:
        evaluation = pool.evaluate(replaced.program({}))
    assert evaluation.failure is None, evaluation
    assert evaluation.metrics["first"] >= 0.2 > evaluation.metrics["second"] > 0
    assert evaluation.seconds == pytest.approx(
        evaluation.metrics["first"] + evaluation.metrics["second"]
    )

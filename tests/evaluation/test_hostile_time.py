"""Programs that would run for ever, each in its own way; and lies about how long it took."""

from hostile import Check, Hostile, table

from engine.core import Failure


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
    endless(
        "numbers too small to be fast",
        "x = np.full(1 << 20, 5e-324)\nwhile True: x = np.sqrt(x * 1.5) * np.sqrt(x)",
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
    assert attack(hostile).seconds >= 0.5


def test_the_end_of_endless_output_is_kept(attack: Check) -> None:
    evaluation = attack(endless("counting", "n = 0\nwhile True:\n    n += 1\n    print(n)"))
    text = evaluation.artifacts["stdout"]
    numbers = [int(line) for line in text.splitlines()[1:-1]]
    assert len(text) <= 2048 and numbers == list(range(numbers[0], numbers[-1] + 1))

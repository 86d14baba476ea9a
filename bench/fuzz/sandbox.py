"""Programs that forge their results, in the real sandbox: the way from memory to verdict."""

from __future__ import annotations

from pathlib import Path
from random import Random

from bench.fuzz.mutations import any_bytes
from bench.fuzz.target import Target
from bench.fuzz.wire import check_verdict, results, small_problem
from engine.evaluation import EvaluatorPool
from engine.evaluation.contract import packed_size
from engine.evaluation.wire import LENGTH_BYTES, RAISED_BYTES
from engine.judge.values import WireError

_PROGRAM = """\
import mmap, os, time

LENGTH, DONE = {length}, {done!r}
DATA = bytes.fromhex("{data}")


def f(x):
    memory = mmap.mmap(4, 0)
    memory[8:8 + len(DATA)] = DATA
    memory[:8] = LENGTH.to_bytes(8, "little")
    os.write(5, DONE)
    time.sleep(60)
"""


class Forged(Target):
    name = "sandbox"
    reads = "engine/evaluation/wire.py, native/zygote.cpp, workers.cpp"
    refusals = (WireError,)

    def __init__(self, folder: Path) -> None:
        problem = small_problem(folder)
        self._room = 1 + max(RAISED_BYTES, sum(map(packed_size, problem.stages[0].cases)))
        self._samples = results()
        self._pool = EvaluatorPool(problem=problem, workers=1)

    def draw(self, rng: Random) -> tuple[bytes, int, bytes]:
        data = any_bytes(rng, rng.choice(self._samples), self._samples)[: self._room]
        odd = (0, 1, len(data) + 1, self._room, self._room + 1, 2**63, 2**64 - 1)
        length = len(data) if rng.random() < 0.8 else rng.choice(odd)
        return data, length, rng.choice((data[:1] or b"V", b"V", b"F", b"VV", b"\0"))

    def feed(self, given: tuple[bytes, int, bytes]) -> None:
        data, length, done = given
        program = _PROGRAM.format(length=length, done=done, data=data.hex())
        self._pool.submit(candidate_id="forged", program=program)
        ((_, found),) = self._pool.completed(timeout=None)
        memory = data + bytes(self._room - len(data))
        check_verdict(found.score, found.failure, memory[: min(length, self._room + LENGTH_BYTES)])

    def close(self) -> None:
        self._pool.close()


TARGETS = (Forged,)

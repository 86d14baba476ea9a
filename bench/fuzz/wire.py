"""What a candidate's process sends: results, frames, values, messages, a judge's last line."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections import deque, namedtuple
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.fuzz.mutations import VALUES, any_bytes, any_text, any_tree
from bench.fuzz.reference import checksum, frames_of, result_of, same, verdict_of
from bench.fuzz.target import Target, WrongError
from engine.core import (
    FULL,
    ArraySpec,
    Case,
    Direction,
    Judge,
    JudgeKind,
    Limits,
    Outputs,
    Problem,
    Stage,
)
from engine.evaluation._native import Ended, Outcome
from engine.evaluation.attendant import Seen
from engine.evaluation.contract import pack
from engine.evaluation.judged import judged
from engine.evaluation.verdict import judge
from engine.judge.decoding import decode
from engine.judge.encoding import encode
from engine.judge.frames import Channel, Closed
from engine.judge.link import Link
from engine.judge.manners import EvaluatorManners
from engine.judge.proxies import Raised
from engine.judge.values import WireError

SECRET = "what the evaluator must not tell"
_OPEN = range(0, 5)
_OUTPUTS = {
    "table": ArraySpec(shape=(_OPEN, 3)),
    "count": ArraySpec(shape=(), dtype="int64"),
    "any": ArraySpec(shape=(2,), dtype="float32", finite=False),
    "mask": ArraySpec(shape=(_OPEN,), dtype="bool"),
}
SPECS = (
    *(("d", (_OPEN, 3), True), ("q", (), False), ("f", (2,), False), ("?", (_OPEN,), False)),
) * 2
"""The same for `result_of`, of both cases."""
_CASES = tuple(Case(name=f"case {n}", args=(float(n),), outputs=_OUTPUTS) for n in range(2))


def _score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    return {"score": checksum(outputs)}


def small_problem(folder: Path) -> Problem:
    """Return a problem whose score is a checksum of what a program returns."""
    return Problem(
        name="fuzz",
        folder=folder,
        direction=Direction.MAXIMISE,
        statement="Return anything.",
        initial_program="def f(x):\n    return [[x] * 3], 0, [x, x], [True]\n",
        entry_point="f",
        stages=(Stage(name=FULL, cases=_CASES, score=_score),),
        isolate_cases=False,
        limits=Limits(seconds=5.0, memory_bytes=256 << 20),
        modules=(),
        known_scores=(),
        fingerprint="fuzz",
    )


def results() -> list[bytes]:
    """Return samples of results, each with its tag."""
    honest = [
        b"V" + b"".join(pack((table, 7, [0.5, np.nan], mask), case) for case in _CASES)
        for table, mask in (
            (np.ones((2, 3)), [True, False, True]),
            (np.zeros((0, 3)), []),
            (np.full((4, 3), -5e-324), [False] * 4),
        )
    ]
    raised = [f"F{kind}\0it failed\0Traceback" for kind in ("error", "memory", "output", "crash")]
    return [*honest, *(each.encode() for each in raised)]


class Results(Target):
    name = "result"
    reads = "engine/evaluation/verdict.py, contract.py"
    share = 3
    refusals = (WireError,)

    def __init__(self, folder: Path) -> None:
        self._problem = small_problem(folder)
        self._samples = results()
        self._observation: Any = SimpleNamespace(
            outcome=Outcome.ANSWERED,
            ended=Ended.DONE,
            exit_code=0,
            output=b"",
            seconds=[0.1],
            peak_bytes=1,
        )

    def draw(self, rng: Random) -> bytes:
        return any_bytes(rng, rng.choice(self._samples), self._samples)

    def feed(self, given: bytes) -> None:
        found = judge(self._problem, self._problem.stages[0], self._observation, [given])
        check_verdict(found.score, found.failure, given)


def check_verdict(score: float | None, failure: str | None, result: bytes) -> None:
    """Check the verdict on a result.

    Raises:
        WireError: it has no score, and deserves none.
        WrongError: it has not what it deserves.
    """
    expected = result_of(result, SPECS)
    if (score, failure) != expected:
        raise WrongError(f"{score} and {failure} for what deserves {expected}: {result[:200]!r}")
    if score is None:
        raise WireError("it has no score")


def _frame(tree: Any, blobs: Sequence[bytes] = ()) -> bytes:
    text = json.dumps(tree).encode(errors="surrogatepass")
    head = struct.pack("<QQQ", len(text), len(blobs), sum(map(len, blobs)))
    return head + text + b"".join(struct.pack("<Q", len(each)) for each in blobs) + b"".join(blobs)


class Frames(Target):
    name = "frames"
    reads = "engine/judge/frames.py"
    share = 2
    refusals = (WireError, Closed)

    def __init__(self, folder: Path) -> None:
        trees = [each for each, _ in map(_encoded, _values())]
        self._samples = [
            *(_frame(["done", 1, tree], [b"x" * 8]) for tree in trees),
            _frame([1]) + _frame("é\ud800", [b"", b"abc"]) + _frame({}),
            _frame(None, [b""] * 20),
        ]

    def draw(self, rng: Random) -> bytes:
        return any_bytes(rng, rng.choice(self._samples), self._samples)[:30_000]

    def feed(self, given: bytes) -> None:
        reading, writing = os.pipe()
        try:
            os.write(writing, given)
            os.close(writing)
            channel, found = Channel(reading), []
            try:
                while True:
                    tree, blobs = channel.receive()
                    found.append((tree, [bytes(each) for each in blobs]))
            except (WireError, Closed) as error:
                end = "cut" if isinstance(error, Closed) else "malformed"
        finally:
            os.close(reading)
        expected = frames_of(given)
        if repr((found, end)) != repr(expected):
            raise WrongError(f"{(found, end)!r:.200} where {expected!r:.200} was sent")
        if end == "malformed" or not found:
            raise Closed("no whole frame")


class _NoReferences:
    def export(self, value: object, encode: Callable[[object], Any]) -> Any:
        raise WireError(f"a {type(value).__name__} can't cross")

    def resolve(self, tag: str, payload: Any, decode: Callable[[Any], Any]) -> Any:
        raise WireError("there are no objects")


_NONE = _NoReferences()
_Point = namedtuple("_Point", "x y")


def _values() -> list[Any]:
    ragged = np.empty((2, 1), dtype=object)
    ragged[:, 0] = [[1, 2], [3.5]]
    return [
        *(None, True, 1, 1.5, "text", [1, "a", None], (1, 2), {"a": [1, (2,)]}, {1: 2, (3,): "x"}),
        *({1, 2}, frozenset("ab"), deque([1]), 1 + 2j, b"bytes", range(1, 9, 2), slice(0, None)),
        *(1 << 100, -(1 << 70), Fraction(1, 3), Decimal("0.1"), _Point(1, [2.0]), float),
        *(np.arange(6.0).reshape(2, 3), np.array(["ab", "c"]), np.array([True, False]), ragged),
        *(np.float32(0.5), np.int8(3), np.complex64(1j), np.datetime64("2026-11-23"), np.zeros(0)),
        {"population": [np.ones((2, 2)), {"score": 0.5, "tags": ("a", "b")}], "n": 1 << 64},
    ]


def _encoded(value: Any) -> tuple[Any, list[bytes]]:
    return encode(value, _NONE)


TAGS = tuple("tnqodrszlcbiaugTfDyxwe")
_LEAVES: tuple[Any, ...] = (
    *VALUES,
    *({tag: [[], 0]} for tag in TAGS),
    *({tag: 0} for tag in TAGS),
    *("<f8", "|b1", "<U2", "<M8[s]", "<i8", "<c16", "|S3", "float", "numpy.float64"),
    *("__eq__", "__radd__", "_fields", "_1"),  # as names of fields
)


class Values(Target):
    name = "values"
    reads = "engine/judge/encoding.py, decoding.py, values.py"
    share = 4
    refusals = (WireError,)

    def __init__(self, folder: Path) -> None:
        self._samples = [*map(_encoded, _values())]

    def draw(self, rng: Random) -> tuple[Any, list[bytes]]:
        tree, blobs = rng.choice(self._samples)
        if rng.random() < 0.2:
            blobs = [any_bytes(rng, each) for each in blobs]
        return any_tree(rng, tree, _LEAVES), blobs

    def feed(self, given: tuple[Any, list[bytes]]) -> None:
        tree, blobs = given
        value = decode(tree, blobs, _NONE)
        again = decode(*_encoded(value), _NONE)
        if not same(value, again):
            raise WrongError(f"{value!r:.200} is {again!r:.200} after another crossing")


class Own:
    """An object of the problem's own class, of which a program may have what is public."""

    def __init__(self) -> None:
        self.shown = 1
        self._kept = SECRET

    def double(self, value: Any) -> Any:
        return [value, value]

    def _tell(self) -> str:
        return self._kept


def _own_function(*args: Any) -> int:
    return len(args)


class Messages(Target):
    name = "link"
    reads = "engine/judge/link.py, manners.py, proxies.py"
    share = 2
    refusals = (WireError, Closed, Raised)

    def __init__(self, folder: Path) -> None:
        self._manners = EvaluatorManners((Path(__file__).resolve().parent,))
        kind = [9, "Plan", ["__call__", "__len__", "__getitem__"]]
        answers = [
            *(["done", 1, tree] for tree, _ in map(_encoded, _values())),
            ["done", 1, {"x": {"id": 3, "type": kind, "has": {"a": 1}}}],
            ["done", 1, [{"x": {"id": 3, "type": kind}}, {"x": {"id": 3}}, {"w": 1}, {"w": 2}]],
            ["done", 1, {"e": ["enum", "Enum", "X"]}],
            ["raised", 1, ["ValueError", "too small", 3, "Traceback"]],
            ["raised", 1, ["UnicodeDecodeError", "x", None, ""]],
            ["done", 2, None],
        ]
        asks = [
            *(["ask", 5, [f, [{"w": n}, name]]] for n in range(1, 5) for f, name in _ATTRIBUTES),
            *(["ask", 6, ["call", [{"w": n}, [1], {"o": {}}]]] for n in range(1, 5)),
            *(["ask", 6, ["method", [{"w": n}, "double", [[1]], {"o": {}}]]] for n in range(1, 5)),
            *(["ask", 7, ["special", [{"w": n}, "__len__", []]]] for n in range(1, 5)),
        ]
        self._answers, self._asks = answers, asks

    def draw(self, rng: Random) -> bytes:
        asked = [rng.choice(self._asks) for _ in range(rng.choice((0, 0, 1, 2, 5)))]
        frames = [any_tree(rng, each, _LEAVES) for each in (*asked, rng.choice(self._answers))]
        data = b"".join(_frame(each, [bytes(8), bytes(24)]) for each in frames)
        return data if rng.random() < 0.9 else any_bytes(rng, data)

    def feed(self, given: bytes) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            # What is to be read is there; an answer that finds no room counts as an end.
            theirs.sendall(given[:150_000])
            theirs.shutdown(socket.SHUT_WR)
            ours.setblocking(False)
            theirs.setblocking(False)
            link = Link(Channel(ours.fileno()), self._manners)
            try:
                link.ask("call", None, [_own_function, Own()], {})
            finally:
                told = theirs.recv(1 << 22)
                if SECRET.encode() in told:
                    raise WrongError("the program was told a secret")


_ATTRIBUTES = (
    *(("attribute", "shown"), ("attribute", "_kept"), ("attribute", "__globals__")),
    *(("attribute", "__class__"), ("method", "_tell"), ("attribute", "__init__")),
)


class Verdicts(Target):
    name = "judge"
    reads = "engine/evaluation/judged.py"
    share = 2
    refusals = (WireError,)

    def __init__(self, folder: Path) -> None:
        self._problem = small_problem(folder)
        self._judge = Judge(kind=JudgeKind.COMMAND, command=("x",), metric="score")
        self._observation: Any = SimpleNamespace(
            outcome=Outcome.ANSWERED, ended=Ended.EXITED, exit_code=0, seconds=[0.1], peak_bytes=1
        )
        self._trees = [
            {"score": 0.5, "artifacts": {"a": "text", "b": 1}, "other": 2},
            {"score": 1, "error": "", "failure": "timeout"},
            {"score": 0.0, "error": "it failed", "failure": "crash", "artifacts": []},
            {"combined_score": 1.5, "score ": 2, "score": True},
        ]

    def draw(self, rng: Random) -> str:
        line = json.dumps(any_tree(rng, rng.choice(self._trees)))
        if rng.random() < 0.4:
            line = any_text(rng, line, ["printed\n", '{"score": 9}\n'])
        return (
            rng.choice(("", "printed\n", '{"score": 7}\n')) + line + rng.choice(("", "\n", " \n\n"))
        )

    def feed(self, given: str) -> None:
        # As it arrives: bytes, of which the malformed ones are replaced.
        text = given.encode(errors="replace").decode(errors="replace")
        seen = Seen(stdout=text, stderr="", program="", candidate=None)
        found = judged(self._problem, self._judge, self._observation, seen)
        expected = verdict_of(text, "score")
        if found.score != expected:
            raise WrongError(f"the score is {found.score} for {text!r:.200}, not {expected}")
        if found.score is None:
            raise WireError("it has no score")


TARGETS = (Results, Frames, Values, Messages, Verdicts)

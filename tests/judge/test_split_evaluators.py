"""Evaluators that are split from the program: they see what they would see together with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from referees import judge

from engine.judge.setup import Setup

LOAD = """
import importlib.util, sys

def load(path):
    spec = importlib.util.spec_from_file_location("program", path)
    program = importlib.util.module_from_spec(spec)
    sys.modules["program"] = program
    spec.loader.exec_module(program)
    return program
"""


def verdict(
    tmp_path: Path, evaluator: str, program: str, *, split: bool = True, **options: Any
) -> dict[str, Any]:
    """Return the verdict of an evaluator, which has `load`, on a program."""
    folder = tmp_path / "problem"
    folder.mkdir(exist_ok=True)
    (folder / "evaluator.py").write_text(LOAD + evaluator)
    setup = Setup(
        contract="openevolve",
        evaluator=str(folder / "evaluator.py"),
        folder=str(folder),
        **options,
    )
    return judge(setup, program, tmp_path, split=split)


def score(tmp_path: Path, body: str, program: str, **options: Any) -> Any:
    """Return what an expression over ``program`` is, or the error."""
    text = "\n".join(f"    {line}" for line in body.strip().splitlines())
    evaluator = f"\ndef evaluate(path):\n    program = load(path)\n{text}\n"
    evaluator += '    return {"combined_score": float(found)}\n'
    found = verdict(tmp_path, evaluator, program, **options)
    return found.get("score", found.get("error"))


IMPORTS = {
    "spec": "program = load(path)",
    "module": "import os\n    sys.path.insert(0, os.path.dirname(path))\n"
    "    program = __import__(os.path.basename(path)[:-3])",
    "import_module": "import importlib, os\n    sys.path.append(os.path.dirname(path))\n"
    "    program = importlib.import_module('program')",
    "loader": "from importlib.machinery import SourceFileLoader\n"
    "    program = SourceFileLoader('p', path).load_module()",
    "run_path": "import runpy, types\n    program = types.SimpleNamespace(**runpy.run_path(path))",
    "fresh": "load(path)\n    program = load(path)",
}


@pytest.mark.parametrize("way", IMPORTS)
def test_every_way_to_import(tmp_path: Path, way: str) -> None:
    evaluator = f"""
def evaluate(path):
    {IMPORTS[way]}
    import os
    print(open(path).read())
    assert "SECRET" not in vars(sys.modules["evaluation_module"])
    return {{"combined_score": program.double(21), "text": open(path).read()}}
"""
    program = "def double(x):\n    return 2 * x\n"
    found = verdict(tmp_path, evaluator, program)
    assert found["score"] == 42.0
    assert found["artifacts"]["text"] == program


PROGRAM = """
import math
import numpy as np
from dataclasses import dataclass

LIMIT = 7
TABLE = {1: (2, 3)}

@dataclass
class Point:
    x: float
    y: float = 1.0

    def norm(self):
        return math.hypot(self.x, self.y)

    def __len__(self):
        return 3

    def __iter__(self):
        return iter([self.x, self.y])

class Counter:
    start = 5

    def __init__(self, start=0):
        self.count = start

    def step(self, by=1):
        self.count += by
        return self

    @classmethod
    def make(cls):
        return cls(cls.start)

def point(x):
    "Make a point."
    return Point(x, 4.0)

def numbers(n, *, scale=2.0):
    for index in range(n):
        yield index * scale

def apply(function, values):
    return [function(value) for value in values]

async def later(x):
    return x + 1

def array(n):
    return np.arange(n, dtype=np.float32).reshape(2, -1)

def same(thing):
    return thing

def fields(model):
    return model.size * model.weight

def sort(values):
    values.sort()

def act(game):
    return sum(game.play(move) for move in range(3)) + game.total

def fail(x):
    raise ValueError(f"no {x}")
"""

BODIES = {
    "found = program.LIMIT": 7,
    "found = program.TABLE[1][1]": 3,
    "found = program.point(3.0).norm()": 5,
    "p = program.point(3.0)\nfound = p.x + p.y": 7,
    "found = len(program.point(1.0))": 3,
    "found = sum(program.point(1.0))": 5,
    "found = isinstance(program.point(1.0), program.Point)": 1,
    "found = program.Point(6.0, y=8.0).norm()": 10,
    "c = program.Counter(2)\nc.step().step(by=3)\nfound = c.count": 6,
    "c = program.Counter(2)\nc.count = 9\nfound = c.step().count": 10,
    "found = program.Counter.make().count": 5,
    "found = sum(program.numbers(3, scale=1.5))": 4.5,
    "found = sum(program.apply(lambda x: x * x, [1, 2, 3]))": 14,
    "import asyncio\nfound = asyncio.iscoroutinefunction(program.later) or program.later(1)": 2,
    "a = program.array(6)\nfound = a.shape == (2, 3) and str(a.dtype) == 'float32'": 1,
    "import inspect\nfound = inspect.isfunction(program.point)": 1,
    "import inspect\nfound = inspect.isclass(program.Point)": 1,
    "import inspect\nfound = [*inspect.signature(program.numbers).parameters] == ['n', 'scale']": 1,
    "found = program.point.__name__ == 'point' and program.point.__doc__ == 'Make a point.'": 1,
    "found = not hasattr(program, 'nothing')": 1,
    "program.LIMIT = 8\nfound = program.LIMIT": 8,
    "thing = object.__new__(Model)\nfound = program.same([thing])[0] is thing": 1,
    "found = program.fields(Model(3, 4.0))": 12,
    "found = program.act(Game())": 6,
    "found = program.same(Color.RED) is Color.RED": 1,
    "found = program.same(program.point)(1).x": 1,
    "v = {'a': (1, {2, 3}, None, 1j)}\nfound = program.same(v) == v": 1,
    "found = callable(program.Point) and not callable(program.LIMIT)": 1,
    "try:\n    program.fail(3)\nexcept ValueError as e:\n    found = 'no 3 (line' in str(e)": 1,
    "try:\n    program.fail(3)\nexcept Exception as e:\n    found = len(type(e).__name__)": 10,
}

HELPERS = """
from dataclasses import dataclass
from enum import Enum

class Color(Enum):
    RED = 1

@dataclass
class Model:
    size: int
    weight: float

class Game:
    def __init__(self):
        self.total = 0
        self._answer = 42

    def play(self, move):
        self.total += move
        return 1
"""


@pytest.mark.parametrize("body", BODIES)
def test_what_an_evaluator_asks_for(tmp_path: Path, body: str) -> None:
    text = "\n".join(f"    {line}" for line in body.splitlines())
    evaluator = f"{HELPERS}\ndef evaluate(path):\n    program = load(path)\n{text}\n"
    evaluator += '    return {"combined_score": float(found)}\n'
    found = verdict(tmp_path, evaluator, PROGRAM)
    assert found.get("score") == pytest.approx(BODIES[body]), found


def test_a_module_of_the_folder_is_there_for_the_program(tmp_path: Path) -> None:
    texts = {"rules": "LIMIT = 3\n", "pack": "", "pack.inner": "from rules import LIMIT\n"}
    program = "from pack.inner import LIMIT\ndef get():\n    return LIMIT\n"
    assert score(tmp_path, "found = program.get()", program, neighbours=texts) == 3


def test_what_a_program_changes_in_place_stays_unchanged(tmp_path: Path) -> None:
    body = "values = [3, 1]\nprogram.sort(values)\nfound = values[0]"
    assert score(tmp_path, body, PROGRAM) == 3
    found = verdict(
        tmp_path,
        "\ndef evaluate(path):\n    load(path).sort([3, 1])\n    return {'combined_score': 1}\n",
        PROGRAM,
        is_rehearsal=True,
    )
    assert "changes in place" in found["artifacts"]["doubts"]


def test_threads_share_the_program(tmp_path: Path) -> None:
    body = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    found = sum(pool.map(program.same, range(100)))
"""
    assert score(tmp_path, body, PROGRAM) == 4950


def test_forked_processes_share_the_program(tmp_path: Path) -> None:
    evaluator = """
import multiprocessing, os

def work(program, value, queue):
    queue.send(program.same(value))

def evaluate(path):
    program, total = load(path), 0
    context = multiprocessing.get_context("fork")
    pairs = [context.Pipe(duplex=False) for _ in range(4)]
    others = [
        context.Process(target=work, args=(program, value, pair[1]))
        for value, pair in enumerate(pairs)
    ]
    for each in others:
        each.start()
    found = sum(pair[0].recv() for pair in pairs)
    for each in others:
        each.join()
    return {"combined_score": found + program.same(10)}
"""
    assert verdict(tmp_path, evaluator, PROGRAM)["score"] == 16


def test_what_comes_late_to_a_process_that_was_ended_is_no_other_ones_answer(
    tmp_path: Path,
) -> None:
    evaluator = """
import multiprocessing

def evaluate(path):
    program = load(path)
    context = multiprocessing.get_context("fork")

    def asked(value, seconds):
        here, there = context.Pipe(duplex=False)
        other = context.Process(target=lambda: there.send(program.after(value)))
        other.start()
        found = here.recv() if here.poll(seconds) else 0
        other.kill()
        other.join()
        return found

    return {"combined_score": asked(100, 0.3) + asked(7, 30)}
"""
    program = "import time\ndef after(x):\n    time.sleep(1 if x == 100 else 0)\n    return x\n"
    assert verdict(tmp_path, evaluator, program)["score"] == 7


def test_an_alarm_ends_a_call(tmp_path: Path) -> None:
    evaluator = """
import signal

class Late(Exception):
    pass

def late(*_):
    raise Late

def evaluate(path):
    program = load(path)
    signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        program.slow()
    except Late:
        return {"combined_score": program.quick()}
"""
    program = "import time\ndef slow():\n    time.sleep(1)\ndef quick():\n    return 3\n"
    assert verdict(tmp_path, evaluator, program)["score"] == 3


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("exec(open(path).read(), {})", "executes the program's text"),
        ("compile(open(path).read(), path, 'exec')", "compiles the program's text"),
        ("import ast\n    compile(ast.parse(open(path).read()), path, 'exec')", "a syntax tree"),
        ("import subprocess\n    subprocess.run([sys.executable, path])", "starts a process"),
        ("import os\n    os.system('true')", "starts a process"),
        (
            "import multiprocessing\n    context = multiprocessing.get_context('spawn')\n"
            "    context.Process(target=print).start()",
            "starts a process (multiprocessing)",
        ),
        (
            "import shutil, tempfile\n    to = tempfile.mkdtemp() + '/q.py'\n"
            "    open(to, 'w').write(open(path).read() + '\\nx = 1')\n    load(to)",
            "a file that it wrote itself",
        ),
        ("load(path).math.pi", "uses the program's math"),
    ],
)
def test_what_can_not_be_split_is_noted_and_refused(tmp_path: Path, body: str, reason: str) -> None:
    evaluator = f"\ndef evaluate(path):\n    {body}\n    return {{'combined_score': 1}}\n"
    found = verdict(tmp_path, evaluator, PROGRAM, is_rehearsal=True)
    assert "split" in found["error"]
    assert reason in found["artifacts"]["doubts"]


def test_a_copy_of_the_program_is_the_program(tmp_path: Path) -> None:
    body = """
import shutil, tempfile
to = tempfile.mkdtemp() + "/q.py"
shutil.copy(path, to)
found = load(to).LIMIT
"""
    assert score(tmp_path, body, PROGRAM) == 7


def test_the_syntax_of_a_program_may_be_looked_at(tmp_path: Path) -> None:
    body = "import ast\nfound = len(ast.parse(open(path).read()).body) > 3"
    assert score(tmp_path, body, PROGRAM) == 1


def test_a_program_that_does_not_load(tmp_path: Path) -> None:
    assert "SyntaxError" in score(tmp_path, "found = 1", "def f(:\n")
    assert "ValueError: no" in score(tmp_path, "found = 1", "raise ValueError('no')\n")
    assert "No module" in score(tmp_path, "found = 1", "import nowhere_to_be_found\n")

"""Programs, and whole candidate processes, that want a score they have not earned."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from referees import judge

from engine.judge.setup import Setup

EVALUATOR = """
import importlib.util

BENCHMARK = 100.0
SECRET = [3, 1, 4]


class Task:
    def __init__(self):
        self.size = 3
        self._answer = SECRET

    def check(self, values):
        return len(values)


def objective(x):
    return -abs(x - 2)


def evaluate(path):
    spec = importlib.util.spec_from_file_location("program", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    found = program.solve(Task(), objective, iter([1, 2]))
    values = [float(value) for value in found]
    return {"combined_score": sum(values) / BENCHMARK}
"""

HONEST = "def solve(task, objective, items):\n    return [1.0, 2.0]\n"


def verdict(tmp_path: Path, program: str, *, other: list[str] | None = None) -> dict[str, Any]:
    folder = tmp_path / "problem"
    folder.mkdir(exist_ok=True)
    (folder / "evaluator.py").write_text(EVALUATOR)
    setup = Setup(contract="openevolve", evaluator=str(folder / "evaluator.py"), folder=str(folder))
    return judge(setup, program, tmp_path, other=other)


def test_an_honest_program(tmp_path: Path) -> None:
    assert verdict(tmp_path, HONEST)["score"] == 0.03


ATTACKS = {
    "the evaluator's module": """
import sys
def solve(task, objective, items):
    sys.modules["evaluation_module"].BENCHMARK = 1e-9
    return [1.0, 2.0]
""",
    "the caller's frame": """
import sys
def solve(task, objective, items):
    frame = sys._getframe()
    while frame:
        if "BENCHMARK" in frame.f_globals:
            frame.f_globals["BENCHMARK"] = 1e-9
        frame = frame.f_back
    return [1.0, 2.0]
""",
    "the memory": """
import gc
def solve(task, objective, items):
    for each in gc.get_objects():
        if isinstance(each, dict) and "BENCHMARK" in each:
            each["BENCHMARK"] = 1e-9
    return [1.0, 2.0]
""",
    "a function's globals": """
def solve(task, objective, items):
    for way in ("__globals__", "__code__", "func_globals", "__self__", "__builtins__"):
        try:
            getattr(objective, way)["BENCHMARK"] = 1e-9
        except Exception:
            pass
    return [1.0, 2.0]
""",
    "a class": """
class Number(float):
    def __float__(self):
        return 1e9
    def __add__(self, other):
        return 1e9
class Values(list):
    def __iter__(self):
        return iter([1e9])
def solve(task, objective, items):
    return Values([Number(1.0), Number(2.0)])
""",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_gains_nothing(tmp_path: Path, attack: str) -> None:
    found = verdict(tmp_path, ATTACKS[attack])
    assert found.get("score", 0.03) == 0.03


PRIES = [
    "task._answer",
    "task.__class__",
    "task.__dict__['_answer']",
    "task.check.__func__",
    "task.check.__globals__",
    "objective.__globals__",
    "objective.__code__",
    "items.gi_frame",
    "items.__reduce__()",
    "LINK.ask('attribute', task, '_answer')",
    "LINK.ask('attribute', task, '__init__')",
    "LINK.ask('attribute', objective, 'func_globals')",
    "LINK.ask('attribute', items, 'gi_frame')",
    "LINK.ask('method', task, '__getattribute__', ['_answer'], {})",
    "LINK.ask('special', task, '__reduce__', [])",
    "LINK.ask('special', task, '__getattribute__', ['_answer'])",
    "LINK.ask('special', items, '__next__', [])",
    "LINK.ask('assign', task, 'size', 9)",
    "LINK.ask('call', task, [], {})",
    "LINK.ask('call', 3, [], {})",
    "LINK.ask('load', 'x = 1', 'y', 'z', {}, False)",
    "LINK.ask('state')",
    "LINK.ask('nothing')",
    "LINK.ask('attribute')",
    "LINK.ask('method', task, 'check', 3, 4)",
]

PRY = """
import gc
from engine.judge.link import Link
(LINK,) = [each for each in gc.get_objects() if isinstance(each, Link)]
def solve(task, objective, items):
    try:
        found = {pry}
    except BaseException as error:
        return [1.0, 2.0]
    text = repr(found)
    return [1000.0] if "3, 1, 4" in text or "BENCHMARK" in text else [1.0, 2.0]
"""


@pytest.mark.parametrize("pry", PRIES)
def test_nothing_can_be_pried_out_of_the_evaluator(tmp_path: Path, pry: str) -> None:
    assert verdict(tmp_path, PRY.format(pry=pry))["score"] == 0.03


def test_what_a_program_may_do(tmp_path: Path) -> None:
    program = """
def solve(task, objective, items):
    return [task.size, task.check([1, 2]), objective(5)]
"""
    assert verdict(tmp_path, program)["score"] == 0.02


ENDS = {
    "exits": "import os\ndef solve(*_):\n    os._exit(0)\n",
    "crashes": "import ctypes\ndef solve(*_):\n    ctypes.string_at(0)\n",
    "closes": "import os\ndef solve(*_):\n    os.closerange(3, 4096)\n    return [1e9]\n",
    "exits at once": "import os\nos._exit(0)\n",
    "exits politely": "import sys\ndef solve(*_):\n    sys.exit(0)\n",
    "returns a module": "import os\ndef solve(*_):\n    return [os]\n",
    "returns what is deep": "def solve(*_):\n    x = []\n    for _ in range(999):\n"
    "        x = [x]\n    return x\n",
    "returns a cycle": "def solve(*_):\n    x = []\n    x.append(x)\n    return x\n",
    "raises what can't be told": "class E(Exception):\n    def __str__(self):\n        raise self\n"
    "def solve(*_):\n    raise E\n",
    "calls itself": "def solve(*_):\n    return solve()\n",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_does_not_answer_has_failed(tmp_path: Path, end: str) -> None:
    found = verdict(tmp_path, ENDS[end])
    assert found["error"]
    assert "score" not in found


OTHER = """
import json, os, struct, sys
fd = int(sys.argv[1])
def read(size):
    data = b""
    while len(data) < size:
        part = os.read(fd, size - len(data))
        if not part:
            os._exit(0)
        data += part
    return data
def receive():
    size, count, total = struct.unpack("<QQQ", read(24))
    body = json.loads(read(size))
    read(8 * count + total)
    return body
def raw(data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]
def send(tree, *blobs):
    text = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
    head = struct.pack("<QQQ", len(text), len(blobs), sum(map(len, blobs)))
    raw(head + text + b"".join(struct.pack("<Q", len(b)) for b in blobs) + b"".join(blobs))
def function(number):
    kind = {"x": {"id": number, "type": [number + 1, "function", ["__call__"]]}}
    return kind
def loaded(number, **changed):
    told = {"module": function(100), "functions": {"o": {"solve": [function(1), None, None, True]}},
            "values": {"o": {}}, "withheld": [], "about": None}
    send(["done", number, {"o": {**told, "functions": told["functions"], **changed}}])
_, number, _ = receive()
"""

FRAMES = {
    "garbage": "raw(b'x' * 100)",
    "a huge header": "raw(struct.pack('<QQQ', 1 << 60, 1 << 60, 1 << 60))",
    "half a frame, and an end": "raw(struct.pack('<QQQ', 100, 0, 0)); os._exit(0)",
    "deep nesting": "send(b'[' * 500_000)",
    "no message": "send({'a': 1})",
    "an answer to nothing, and an end": "send(['done', 999, None]); os._exit(0)",
    "an unknown reference": "send(['done', number, {'w': 77}])",
    "a reference that is none": "send(['done', number, {'x': []}])",
    "an unknown tag": "send(['done', number, {'__reduce__': 1}])",
    "a pickle": "send(['done', number, {'b': 0}], b'cos\\nsystem\\n(S\\'true\\'\\ntR.')",
    "no description": "send(['done', number, None])",
    "hostile names": "loaded(number, values={'o': {'__class__': 1, '__builtins__': 2}})",
    "a hostile signature": "loaded(number, functions={'o': {'solve': "
    "[function(1), [['x', 9, True, 1]], None, True]}})",
    "an array that is too short": "loaded(number); _, number, _ = receive(); "
    "send(['done', number, {'a': ['<f8', [10**9], 0]}], b'12345678')",
    "an array of objects": "loaded(number); _, number, _ = receive(); "
    "send(['done', number, {'a': ['|O', [1], 0]}], b'12345678')",
    "endless types": "loaded(number); _, number, _ = receive(); "
    "send(['done', number, [{'x': {'id': i, 'type': [i, 'T', []]}} for i in range(9, 20000)]])",
    "an exception that is none": "send(['raised', number, 5])",
    "a hostile exception": "send(['raised', number, ['SystemExit', 'x' * 10**6, 1, '']])",
    "questions, and an end": "\\nfor i in range(50): send(['ask', i, ['state', []]])\\nos._exit(0)",
}


@pytest.mark.parametrize("frames", FRAMES)
def test_a_hostile_process_is_a_failure(tmp_path: Path, frames: str) -> None:
    script = tmp_path / "other.py"
    code = FRAMES[frames].replace("\\n", "\n")
    script.write_text(f"{OTHER}\n{code}\nwhile True: receive()\n")
    found = verdict(tmp_path, HONEST, other=[sys.executable, str(script)])
    assert found["error"]
    assert "score" not in found

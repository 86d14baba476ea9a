"""Programs that answer one thing when they are checked, and another when they are scored."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from referees import judge

from engine.judge.setup import Setup

EVALUATOR = """
import atexit
import importlib.util
import json
import time

import numpy as np

BENCHMARK = 100.0


def evaluate(path):
    began = time.time()
    spec = importlib.util.spec_from_file_location("program", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    found = program.solve(np.zeros(2))
    if len(found) != 2 or not all(0 <= value <= 1 for value in found):
        return {"combined_score": 0.0}
    array = np.asarray(found)
    if array.shape != (2,) or array.max() > 1 or not np.isfinite(array).all():
        return {"combined_score": 0.0}
    if found[0] == 1e9 or json.loads(json.dumps([float(each) for each in found])) != list(found):
        return {"combined_score": 0.0}
    score = (sum(found) + float(np.sum(array))) / BENCHMARK
    return {"combined_score": score, "took": time.time() - began}
"""
HONEST = "def solve(x):\n    return [0.5, 0.5]\n"
BEST = 0.04
"""The score of two ones, which is the best that there is to be earned."""


def verdict(
    tmp_path: Path,
    program: str,
    *,
    objects: tuple[str, ...] | None = (),
    evaluator: str = EVALUATOR,
) -> Any:
    folder = tmp_path / "problem"
    folder.mkdir(exist_ok=True)
    path = folder / "evaluator.py"
    path.write_text(evaluator)
    setup = Setup(contract="openevolve", evaluator=str(path), folder=str(folder), objects=objects)
    return judge(setup, program, tmp_path)


def test_an_honest_program(tmp_path: Path) -> None:
    assert verdict(tmp_path, HONEST)["score"] == 0.02


NUMBERS = """
import numpy as np
class Liar:
    asked = 0
    def value(self, *_):
        Liar.asked += 1
        return 0.5 if Liar.asked < {patience} else 1e9
    __float__ = __radd__ = __add__ = __abs__ = __neg__ = value
    def yes(self, *_):
        return True
    __le__ = __lt__ = __ge__ = __gt__ = __eq__ = __bool__ = yes
    def __array__(self, *_, **__):
        return np.array(self.value())
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: self.value()
def solve(x):
    return [Liar(), Liar()]
"""

FACES = {
    **{f"a number, after {n}": NUMBERS.replace("{patience}", str(n)) for n in (3, 9)},
    "a number without an array": NUMBERS.replace("{patience}", "3").replace("__array__", "other"),
    "a sequence": """
class Values:
    asked = 0
    def __len__(self):
        return 2
    def __iter__(self):
        Values.asked += 1
        return iter([0.5, 0.5] if Values.asked < 3 else [1e9, 1e9])
    def __getitem__(self, index):
        return 0.5
def solve(x):
    return Values()
""",
    "an array": """
import numpy as np
class Values(np.ndarray):
    def max(self, *_, **__):
        return 0.5
    def __iter__(self):
        return iter([0.5, 0.5])
    def __array_function__(self, *_):
        return True
    def __array_ufunc__(self, *_, **__):
        return np.True_
def solve(x):
    return np.array([1e9, 1e9]).view(Values)
""",
    "numbers of a subclass": """
import numpy as np
class Number(np.float64):
    def __le__(self, other):
        return True
    def __radd__(self, other):
        return 1e9
    def item(self):
        return 0.5
def solve(x):
    return [Number(1e9), Number(1e9)]
""",
    "whole numbers of a subclass": """
class Number(int):
    def __le__(self, other):
        return True
    def __index__(self):
        return 1
    def __int__(self):
        return 1
def solve(x):
    return [Number(10**9), Number(10**9)]
""",
    "a fraction of a subclass": """
from fractions import Fraction
class Number(Fraction):
    @property
    def denominator(self):
        return 0
def solve(x):
    return [Number(1, 2), Number(1, 2)]
""",
    "a named tuple": """
import collections
class Pair(collections.namedtuple("Pair", ["count", "index"])):
    def __iter__(self):
        return iter([0.5, 0.5])
def solve(x):
    return Pair(1e9, 1e9)
""",
    "named tuples with special methods for fields": """
import numpy as np
class Number(tuple):
    _fields = ("__ge__", "__le__", "__radd__", "__array__", "__float__", "__eq__")
def yes(*_):
    return True
def array(*_, **__):
    return np.array(0.5)
number = Number((yes, yes, lambda *_: 1e9, array, lambda: 0.5, lambda other: other == 0.5))
def solve(x):
    return [number, number]
""",
    "a class of another name": """
class Meta(type):
    def __instancecheck__(cls, other):
        return True
class Values(metaclass=Meta):
    __class__ = list
    def __len__(self):
        return 2
    def __iter__(self):
        return iter([1e9, 1e9])
def solve(x):
    return Values()
""",
    "not a number": "def solve(x):\n    return [float('nan')] * 2\n",
    "infinity": "def solve(x):\n    return [float('inf')] * 2\n",
    "minus infinity": "def solve(x):\n    return [float('-inf'), 1.0]\n",
    "a huge integer": "def solve(x):\n    return [10**400, 10**400]\n",
    "a complex number": "def solve(x):\n    return [0.5 + 1e9j] * 2\n",
    "a date": "import numpy as np\ndef solve(x):\n    return [np.timedelta64(1)] * 2\n",
    "an endless iterator": "import itertools\ndef solve(x):\n    return itertools.repeat(0.5)\n",
    "what is huge": "def solve(x):\n    return [b'x' * (1 << 30), b'x' * (1 << 30)]\n",
    "a huge shape": """
import numpy as np
def solve(x):
    return np.broadcast_to(np.float64(0.5), (1 << 40,))
""",
    "another function, when it was called": """
def solve(x):
    global solve
    solve = lambda *_: [1e9, 1e9]
    return [0.5, 0.5]
""",
}


@pytest.mark.parametrize("face", FACES)
def test_nothing_is_gained(tmp_path: Path, face: str) -> None:
    found = verdict(tmp_path, FACES[face])
    score = found.get("score", 0.0)
    assert math.isfinite(score) and score <= BEST, found


OTHERS = (
    "np.sum = np.max = lambda *_, **__: 1e9; np.ndarray = float",
    "builtins.sum = builtins.float = lambda *_: 1e9; builtins.all = lambda _: True",
    "json.dumps = lambda *_, **__: '{\"score\": 1e9}'; json.JSONEncoder = None",
    "time.time = time.perf_counter = time.monotonic = lambda: 0.0",
    "[vars(each).update(BENCHMARK=1e-9) for each in [*sys.modules.values()]]",
    "[each.update(BENCHMARK=1e-9) for each in gc.get_objects()"
    " if isinstance(each, dict) and '__name__' in each]",
    "while frame: frame.f_globals.update(BENCHMARK=1e-9); frame = frame.f_back",
    "atexit.register(lambda: os.write(1, FORGED))",
    "sys.stdout.write(FORGED.decode()); sys.stderr.write(FORGED.decode())",
    "sys.settrace(lambda *_: None); sys.setprofile(lambda *_: None)",
    "sys.addaudithook(lambda *_: None)",
    "threading.Thread(target=lambda: os.write(1, FORGED)).start()",
    "signal.signal(signal.SIGALRM, lambda *_: os.write(1, FORGED)); signal.alarm(1)",
    "x += 1e9; x.flags.writeable = True; x.resize(5, refcheck=False)",
    "sys.meta_path.clear(); sys.path_hooks.clear()",
    "sys.modules.clear()",
)
OTHER = """
import atexit, builtins, gc, json, os, signal, sys, threading, time
import numpy as np
FORGED = b'\\n{"score": 1e9, "combined_score": 1e9}\\n'
answer = [0.5, 0.5]
def solve(x):
    names = dict(globals(), x=x, frame=sys._getframe())
    for text in %r:
        try:
            exec(text, names)
        except Exception:
            pass
    return answer
"""


FORGER = """
import os
def solve(x):
    for each in range(1024):
        try:
            os.write(each, b'\\n{"score": 1e9, "combined_score": 1e9}\\n')
        except OSError:
            pass
    return [0.5, 0.5]
"""


def test_what_a_program_does_to_its_own_process_gains_nothing(tmp_path: Path) -> None:
    deadly = ("clear()", "builtins", "json", "np.")  # to what answers for the program
    harmless = [each for each in OTHERS if not any(word in each for word in deadly)]
    assert verdict(tmp_path, OTHER % (harmless,))["score"] == 0.02
    assert verdict(tmp_path, OTHER % (OTHERS,)).get("score", 0.0) <= 0.02


def test_forged_lines_on_every_descriptor(tmp_path: Path) -> None:
    assert verdict(tmp_path, FORGER).get("score", 0.0) <= 0.02


NATURAL = {
    "a generator": "return (each for each in (0.5, 0.5))",
    "the values of a dict": "return {'a': 0.5, 'b': 0.5}.values()",
    "an enumeration's": "import enum\n    Half = enum.Enum('Half', {'A': 0.5})\n"
    "    return [Half.A, Half.A]",
    "the array module's": "import array\n    return array.array('d', [0.5, 0.5])",
}


@pytest.mark.parametrize("kind", NATURAL)
def test_what_stands_for_numbers_crosses_as_numbers(tmp_path: Path, kind: str) -> None:
    program = f"import numpy as np\ndef solve(x):\n    {NATURAL[kind]}\n"
    assert verdict(tmp_path, program)["score"] == 0.02


def test_an_evaluator_may_use_of_objects_what_it_used_before(tmp_path: Path) -> None:
    program = FACES["a sequence"].replace("[1e9, 1e9]", "[0.5, 0.5]")
    names = ("__len__", "__iter__", "__next__", "__getitem__", "__array__")
    assert verdict(tmp_path, program, objects=names)["score"] == 0.02
    found = verdict(tmp_path, program, objects=names[1:])
    assert "score" not in found
    assert "len()" in found["error"]


TOTAL = """
import importlib.util


def evaluate(path):
    spec = importlib.util.spec_from_file_location("program", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    found = program.solve()
    return {"combined_score": found.total() + found.other}
"""


def test_a_function_in_a_named_tuple_is_used_as_a_method_is(tmp_path: Path) -> None:
    """NumPy too asks for methods by their names: ``np.sum(found)`` is ``found.sum()``."""
    program = """
import collections
Pair = collections.namedtuple("Pair", ["total", "other"])
def solve():
    return Pair(lambda: 0.5, 0.25)
"""
    assert verdict(tmp_path, program, objects=("total",), evaluator=TOTAL)["score"] == 0.75
    found = verdict(tmp_path, program, evaluator=TOTAL)
    assert "score" not in found
    assert "no total to be used" in found["error"]

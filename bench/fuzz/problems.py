"""Folders that somebody else wrote: problems, other systems' problems, pools."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

from bench.fuzz.mutations import any_bytes, any_text
from bench.fuzz.native import programs
from bench.fuzz.target import Target
from bench.fuzz.wire import small_problem
from engine.core import UserError
from engine.pool import read_pool
from engine.problem import load_problem, shipped
from engine.problem.declaration import read_declaration
from engine.problem.places import place_of_key

_SURROGATES = "surrogatepass"
_COMMAND = """\
direction: maximise
command: [bash, judge.sh, --level=2]
metric: combined
limits: {seconds: 60, memory_mb: 1e3, processes: 8, scratch_mb: 16}
features: {size: [0, 1e3, 10], "depth": [1, 20.5, 4]}
known_scores:
  - {score: 1.5, source: &s "somebody, 2026", comparable: false}
  - {score: 2, source: *s}
target: 3.25
improvement: {solution: [a, b], effort: 3}
"""


class Declarations(Target):
    name = "problem.yaml"
    reads = "engine/problem/declaration.py, places.py"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        paths = [path / "problem.yaml" for path in shipped().values()]
        self._samples = [*(path.read_text(encoding="utf-8") for path in paths), _COMMAND]

    def draw(self, rng: Random) -> bytes:
        text = any_text(rng, rng.choice(self._samples), self._samples)
        data = text.encode(errors=_SURROGATES)
        return data if rng.random() < 0.9 else any_bytes(rng, data)

    def feed(self, given: bytes) -> None:
        path = self._folder / "problem.yaml"
        path.write_bytes(given)
        place_of_key(self._folder, "limits")
        read_declaration(path)


_PEER = {
    "initial_program.py": """# EVOLVE-BLOCK-START
import numpy as np
from helper import table


def squares(count):
    return [index for index in table(count)]
# EVOLVE-BLOCK-END
""",
    "helper.py": "def table(n):\n    return range(n)\n",
    "evaluator.py": '''"""How near a list is to the square numbers."""

import importlib.util
import os, sys
from pathlib import Path
from openevolve.evaluation_result import EvaluationResult
sys.path.insert(0, str(Path(__file__).parent.parent))


def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    found = program.squares(int(os.environ.get("COUNT", "5")))
    right = sum(one == index * index for index, one in enumerate(found))
    return EvaluationResult(metrics={"combined_score": right / 5}, artifacts={"found": str(found)})


def evaluate_stage1(program_path):
    return {"runs": 1.0}


def evaluate_stage2(program_path):
    return evaluate(program_path)
''',
    "config.yaml": """max_iterations: 10
language: python
llm: {temperature: 0.5, models: [{name: a, weight: 1.0}]}
prompt:
  system_message: |
    Write squares(count).
evaluator:
  timeout: 20
  memory_limit_mb: 512
  cascade_evaluation: true
  cascade_thresholds: [0.3, 0.6]
""",
    "run_evo.py": 'search_task_sys_msg = "Write " + f"squares." .strip()\nx = dict(a="b")\n',
    "README.md": "# Squares\n\nMake square numbers.\n",
}


class Peers(Target):
    name = "peer folder"
    reads = "engine/problem/peers, engine/syntax/blocks.py"

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "peer"
        self._samples = [*_PEER.values(), *programs()]

    def draw(self, rng: Random) -> tuple[str, bytes]:
        name = rng.choice(["config.yaml", *_PEER])
        text = any_text(rng, _PEER[name], self._samples)
        data = text.encode(errors=_SURROGATES)
        return name, data if rng.random() < 0.9 else any_bytes(rng, data)

    def feed(self, given: tuple[str, bytes]) -> None:
        name, data = given
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        for each, text in _PEER.items():
            (self._folder / each).write_text(text, encoding="utf-8")
        (self._folder / name).write_bytes(data)
        load_problem(self._folder)


class Pools(Target):
    name = "pool"
    reads = "engine/pool/reading.py"

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "pool"
        self._folder.mkdir()
        self._samples = programs()
        self._problem = small_problem(folder)

    def draw(self, rng: Random) -> bytes:
        text = any_text(rng, rng.choice(self._samples), self._samples)
        data = text.encode(errors=_SURROGATES)
        return data if rng.random() < 0.8 else any_bytes(rng, data)

    def feed(self, given: bytes) -> None:
        (self._folder / "001.py").write_bytes(given)
        found = read_pool([self._folder], problem=self._problem, most_of_run=1)
        for reason in found.unusable.values():
            if "\n" in reason:
                raise AssertionError("a reason is more than a line")
            raise UserError(reason)


TARGETS = (Declarations, Peers, Pools)

"""A Python evaluator in a box, and its program behind narrower walls in a second process."""

import os
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from judges import MEBIBYTE, problem_of
from processes import children, command, descendants, eventually
from verdicts import evaluate

from engine.core import Evaluation, Failure, JudgeKind
from engine.evaluation import EvaluatorPool, open_pool
from engine.judge.setup import Setup

EVALUATOR = """
import importlib.util, json, os
from pathlib import Path

LIMIT = 10.0


def evaluate(path):
    spec = importlib.util.spec_from_file_location("program", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    Path("/tmp/notes").write_text("the evaluator may write here")
    value = program.solve(3)
    return {"combined_score": min(float(value), LIMIT), "pids": len(os.listdir("/proc"))}
"""
HONEST = "def solve(x):\n    return 2 * x\n"


def pool_of(folder: Path, kind: JudgeKind) -> EvaluatorPool:
    (folder / "evaluator.py").write_text(EVALUATOR)
    setup = Setup(contract="openevolve", evaluator=str(folder / "evaluator.py"), folder=str(folder))
    problem = problem_of(
        folder,
        "",
        seconds=10.0,
        memory_bytes=256 * MEBIBYTE,
        kind=kind,
        command=(),
        setup=setup.to_json(),
        processes=16,
    )
    return open_pool(problem=problem, workers=1)


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EvaluatorPool]:
    with pool_of(tmp_path_factory.mktemp("split"), JudgeKind.SPLIT) as pool:
        yield pool


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EvaluatorPool]:
    with pool_of(tmp_path_factory.mktemp("together"), JudgeKind.TOGETHER) as pool:
        yield pool


def servers() -> list[int]:
    """Return the box servers that this process started."""
    return [each for each in children(os.getpid()) if b"engine.evaluation.box" in command(each)]


@pytest.fixture
def attack(split: EvaluatorPool) -> Callable[[str], Evaluation]:
    """Return a function that runs a program's attempt, in its ``solve``, apart from the judge."""

    def run(attempt: str) -> Evaluation:
        body = textwrap.indent(textwrap.dedent(attempt).strip(), "    ")
        start = "import os, sys, socket, subprocess, threading, time\ndef solve(x):\n"
        found = evaluate(split, f"{start}{body}\n    return 1.0\n")
        assert evaluate(split, HONEST).score == 6.0
        # The first process of the next box, its judge, and the program's process.
        assert eventually(lambda: max(map(len, map(descendants, servers()))) == 3)
        return found

    return run


def test_both_kinds_give_the_evaluators_score(
    split: EvaluatorPool, together: EvaluatorPool
) -> None:
    assert evaluate(split, HONEST).score == evaluate(together, HONEST).score == 6.0


@pytest.mark.parametrize(
    "attempt",
    [
        "os.fork()",
        "subprocess.run(['/bin/true'])",
        "open('/tmp/notes').read()",
        "open('/tmp/program/program.py').read()",
        "open('/tmp/mine', 'w')",
        "os.mkdir('/tmp/mine')",
        "open(os.__file__, 'a')",
        "os.listdir('/proc')",
        "os.kill(os.getppid(), 9)",
        "socket.socketpair()",
        "socket.create_connection(('127.0.0.1', 1), 2)",
    ],
)
def test_the_program_has_the_candidates_walls(
    attack: Callable[[str], Evaluation], attempt: str
) -> None:
    found = attack(attempt)
    assert found.failure is Failure.ERROR, found
    assert any(each in found.message for each in ("PermissionError", "Read-only")), found


def test_the_program_reaches_nothing_of_the_judge(attack: Callable[[str], Evaluation]) -> None:
    found = attack(
        """
        for module in list(sys.modules.values()):
            if hasattr(module, "LIMIT"): module.LIMIT = 1e9
        sys.modules["evaluation_module"].LIMIT = 1e9
        """
    )
    assert found.failure is Failure.ERROR and "KeyError" in found.message, found


@pytest.mark.parametrize(
    ("attempt", "failure", "words"),
    [
        ("os._exit(0)", Failure.ERROR, "lost"),
        ("os.kill(os.getpid(), 11)", Failure.ERROR, "lost"),
        ("return float('inf')", None, ""),
        ("while True: pass", Failure.TIMEOUT, "longer than the limit of 10 s"),
        ("x = bytearray(1 << 30)", Failure.ERROR, "MemoryError"),
        ("os.write(4, b'x' * 5000); return 9.0", Failure.ERROR, "lost"),
        ("os.close(4); return 9.0", Failure.ERROR, "lost"),
    ],
)
def test_a_program_that_ends_badly(
    attack: Callable[[str], Evaluation], attempt: str, failure: Failure | None, words: str
) -> None:
    found = attack(attempt)
    assert found.failure == failure and words in found.message, found


def test_what_a_dead_program_printed_and_how_it_died_is_shown(
    attack: Callable[[str], Evaluation],
) -> None:
    found = attack("os.write(1, b'last words'); os.kill(os.getpid(), 11)")
    assert found.artifacts["program"] == "last words\n(the program's process was killed by SIGSEGV)"


def test_a_judge_together_with_its_program_is_still_boxed(together: EvaluatorPool) -> None:
    for attempt in ("open('/etc/brood-test', 'w')", f"os.kill({os.getpid()}, 9)"):
        found = evaluate(together, f"import os\ndef solve(x):\n    {attempt}\n    return 1.0\n")
        assert found.failure is Failure.ERROR, found
    assert evaluate(together, HONEST).score == 6.0


def test_nothing_of_one_evaluation_is_there_in_the_next(together: EvaluatorPool) -> None:
    program = """
    import builtins, os, pathlib
    def solve(x):
        seen = hasattr(builtins, "left") or pathlib.Path("/tmp/left").exists()
        builtins.left = 1
        pathlib.Path("/tmp/left").touch()
        return float(seen)
    """
    scores = [evaluate(together, textwrap.dedent(program)).score for _ in range(2)]
    assert scores == [0.0, 0.0]

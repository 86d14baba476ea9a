"""What a judge prints, and the verdict that comes of it."""

from pathlib import Path

import pytest
from judges import SCORE, problem_of
from verdicts import evaluate

from engine.core import Evaluation, Failure, Problem
from engine.evaluation import EvaluatorPool, JudgePool, open_pool


def run(folder: Path, script: str, program: str = "1\n", **given: object) -> Evaluation:
    problem = problem_of(folder, script, **given)
    with open_pool(problem=problem, workers=1) as pool:
        return evaluate(pool, program)


def test_a_problem_with_a_judge_gets_a_pool_of_judges(tmp_path: Path, double: Problem) -> None:
    with open_pool(problem=problem_of(tmp_path, ""), workers=1) as pool:
        assert type(pool) is JudgePool
    with open_pool(problem=double, workers=1) as pool:
        assert type(pool) is EvaluatorPool


def test_numbers_are_metrics_and_texts_are_shown(tmp_path: Path) -> None:
    said = """
    print("on the way")
    print(json.dumps({"score": 2, "ok": True, "name": "x", "bad": float("nan"),
                      "artifacts": {"hint": "try\\x1b[31m 3", "number": 4}}))
    """
    found = run(tmp_path, SCORE + _dedent(said))
    assert found.failure is None and found.score == 2.0
    assert found.metrics == {"score": 2.0, "ok": 1.0}
    assert found.artifacts == {"stdout": "on the way", "hint": "try\N{REPLACEMENT CHARACTER}[31m 3"}
    assert found.seconds > 0 and found.peak_bytes > 1 << 20


def test_the_programs_files_are_in_the_folder(tmp_path: Path) -> None:
    script = """
    import json, sys
    from pathlib import Path
    folder = Path(sys.argv[-1])
    names = sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))
    print(json.dumps({"score": 1, "artifacts": {"names": " ".join(names),
                      "first": (folder / "a.txt").read_text()}}))
    """
    found = run(tmp_path, script, "#:file a.txt\nhello\n#:file b/c.py\n1\n")
    assert found.artifacts == {"names": "a.txt b b/c.py", "first": "hello\n"}


def test_another_metric_may_be_the_score(tmp_path: Path) -> None:
    script = 'print(\'{"score": 1, "speed": 3.5}\')'
    found = run(tmp_path, script, metric="speed")
    assert found.score == 3.5
    assert found.metrics == {"score": 3.5, "speed": 3.5}


@pytest.mark.parametrize(
    ("line", "failure", "words"),
    [
        ("", Failure.OUTPUT, "no JSON object but ''"),
        ("hello", Failure.OUTPUT, "no JSON object but 'hello'"),
        ("[1]", Failure.OUTPUT, "no JSON object"),
        ("[" * 100_000, Failure.OUTPUT, "no JSON object"),
        ("{}", Failure.OUTPUT, "no number 'score'; it gives no number at all"),
        ('{"scores": 1}', Failure.OUTPUT, "no number 'score'; it gives scores"),
        ('{"score": "1"}', Failure.OUTPUT, "no number 'score'"),
        ('{"score": null}', Failure.OUTPUT, "no number 'score'"),
        ('{"score": NaN}', Failure.OUTPUT, "the score 'score' is nan"),
        ('{"score": -Infinity}', Failure.OUTPUT, "the score 'score' is -inf"),
        ('{"score": 1e999}', Failure.OUTPUT, "the score 'score' is inf"),
        ('{"score": 1' + "0" * 400 + "}", Failure.OUTPUT, "the score 'score' is inf"),
        ('{"score": 1' + "0" * 9000 + "}", Failure.OUTPUT, "no JSON object"),
        ('{"score": 1, "error": "no circle"}', Failure.ERROR, "no circle"),
        ('{"score": 1, "error": "slow", "failure": "timeout"}', Failure.TIMEOUT, "slow"),
        ('{"error": "a", "failure": "screened"}', Failure.ERROR, "a"),
        ('{"error": {"a": 1}}', Failure.ERROR, '{"a": 1}'),
    ],
)
def test_a_line_that_is_no_verdict(tmp_path: Path, line: str, failure: Failure, words: str) -> None:
    (tmp_path / "line").write_text(line)
    found = run(tmp_path, "print(open('line').read())")
    assert (found.score, found.failure) == (None, failure)
    assert words in found.message
    assert "\n" not in found.message and len(found.message) <= 300


def test_endless_output_is_cut_and_its_last_line_counts(tmp_path: Path) -> None:
    script = """
    import sys
    for _ in range(300): print("x" * 100_000)
    print("y" * 50_000, file=sys.stderr)
    print('{"score": 1}')
    """
    found = run(tmp_path, script)
    assert found.score == 1.0
    assert {name: len(text) for name, text in found.artifacts.items()} == {
        "stdout": 2048,
        "stderr": 2048,
    }


def test_a_last_line_without_end_is_said_to_be_one(tmp_path: Path) -> None:
    found = run(tmp_path, "print('{\"score\": 1, \"x\": \"' + 'y' * (2 << 20) + '\"}')")
    assert found.failure is Failure.OUTPUT
    assert found.message == "the judge's last line is longer than 1 MiB"


def test_names_and_numbers_without_end_are_cut(tmp_path: Path) -> None:
    script = """
    import json
    names = {f"{i}" + "n" * 500: i for i in range(1000)}
    print(json.dumps({"score": 1, **names, "artifacts": {n: "t" * 9000 for n in [*names][:40]}}))
    """
    found = run(tmp_path, script)
    assert found.score == 1.0 and len(found.metrics) <= 257 and len(found.artifacts) <= 33
    assert max(map(len, [*found.metrics, *found.artifacts])) <= 100


@pytest.mark.parametrize(
    ("script", "failure", "words"),
    [
        ("print('{\"score\": 1}'); raise SystemExit(3)", Failure.CRASH, "exited with code 3"),
        ("raise ValueError('no such thing')", Failure.CRASH, "code 1: ValueError: no such thing"),
        ("import os; os.kill(os.getpid(), 11)", Failure.CRASH, "was killed by SIGSEGV"),
        ("while True: pass", Failure.TIMEOUT, "longer than the limit of 1 s"),
        ("import time; time.sleep(60)", Failure.TIMEOUT, "longer than the limit"),
        ("x = bytearray(400 << 20)", Failure.MEMORY, "MemoryError (memory limit 256 MiB)"),
    ],
)
def test_a_judge_that_ends_badly(tmp_path: Path, script: str, failure: Failure, words: str) -> None:
    # Where the time is not what ends it, an interpreter's start on a busy machine fits in.
    found = run(tmp_path, script, seconds=1.0 if failure is Failure.TIMEOUT else 30.0)
    assert (found.score, found.failure) == (None, failure), found
    assert words in found.message


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    found = run(tmp_path, "", command=("no-such-program",))
    assert found.failure is Failure.CRASH
    assert "no-such-program can't be run: No such file or directory" in found.message


def test_a_command_may_be_a_file_of_the_folder(tmp_path: Path) -> None:
    script = tmp_path / "judge.sh"
    script.write_text('#!/bin/sh\nread -r line < "$1/x.txt"; echo "{\\"score\\": $line}"\n')
    script.chmod(0o755)
    found = run(tmp_path, "", "42\n", command=("./judge.sh",), file="x.txt")
    assert found.score == 42.0


def test_the_oldest_order_comes_first(tmp_path: Path) -> None:
    script = SCORE + "print(json.dumps({'score': float(program)}))"
    with open_pool(problem=problem_of(tmp_path, script), workers=1) as pool:
        for i in range(4):  # before it is warm
            pool.submit(candidate_id=str(i), program=f"{i}", order=-i)
        found = []
        while pool.in_flight:
            found += pool.completed(timeout=30)
    assert [(name, evaluation.score) for name, evaluation in found] == [
        (str(i), float(i)) for i in (3, 2, 1, 0)
    ]


def _dedent(text: str) -> str:
    from textwrap import dedent

    return dedent(text)

"""``python -m engine.evaluate``, as a user types it."""

import subprocess
import sys
from pathlib import Path

import pytest

from engine.evaluate import main

DOUBLE = Path(__file__).parent / "problems" / "double"
INITIAL = DOUBLE / "initial.py"


def evaluate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "engine.evaluate", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=Path(__file__).parents[2],
    )


def test_a_valid_program_prints_its_metrics() -> None:
    done = evaluate(f"problem.path={DOUBLE}", f"program={INITIAL}")
    assert done.returncode == 0, done.stderr
    assert "score      1.0\n" in done.stdout and "error  0.0\n" in done.stdout
    assert done.stderr == ""


def test_a_failed_program_says_why(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("def double(values, offset):\n    return foo\n")
    done = evaluate(f"problem.path={DOUBLE}", f"program={program}")
    assert done.returncode == 1
    assert "failure    error\n" in done.stdout
    assert "message    line 2: NameError: name 'foo' is not defined\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([f"problem.path={DOUBLE}"], "program= is missing"),
        ([f"program={INITIAL}"], "give one of problem=NAME (circle_packing"),
        (["problem=nonsense", f"program={INITIAL}"], "valid problems: circle_packing"),
        (["problem=signal", "program=/no/such/file.py"], "/no/such/file.py can't be read"),
        (["problem.path=/no/such/folder", f"program={INITIAL}"], "does not exist"),
        (["problem=signal", f"program={INITIAL}", "seed=0"], "valid keys: problem, problem.path"),
        (["signal"], "unknown argument 'signal'"),
        (["problem=signal", f"program={INITIAL}", "data=/no/such"], "/no/such does not exist"),
        (["problem=signal", f"program={INITIAL}", f"data={INITIAL}"], "signal reads no data"),
        (["problem=signal", "program="], "program= has no value"),
        (["problem=signal", "problem=signal"], "given twice"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert err.count("\n") == 1 and words in err
    assert out == ""


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ("signal", "holds no program of problem signal; it is one file: give program=FILE"),
        (
            "tour",
            "holds no program of problem tour; give a folder with improve.py, solve.py, start.py",
        ),
    ],
)
def test_a_folder_without_a_program(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], problem: str, words: str
) -> None:
    (tmp_path / "run.db").write_bytes(b"\xff\xfe")
    assert main([f"problem={problem}", f"program={tmp_path}"]) == 2
    out, err = capfd.readouterr()
    assert out == "" and err == f"error: {tmp_path} {words}\n"


def test_it_loads_nothing_that_a_run_is_for() -> None:
    text = (
        "import sys\nfrom engine.evaluate import main\n"
        f"assert main(['problem.path={DOUBLE}', 'program={INITIAL}']) == 0\n"
        "heavy = {'vllm', 'torch', 'transformers', 'scipy', 'hydra', 'omegaconf', 'numba'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", text], check=True, timeout=120, cwd=root)

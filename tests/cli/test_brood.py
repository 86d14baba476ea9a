"""The command ``brood``: what it lists, runs and refuses, and what a shell completes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import SECONDS

from engine import config
from engine.cli.commands import installed
from engine.cli.words import words
from engine.terminal import INTERRUPTED, UNREAD

START = "import sys; from engine.cli.main import main; sys.exit(main())"


def brood(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``brood`` as its script does."""
    return subprocess.run(
        [sys.executable, "-c", START, *arguments], capture_output=True, text=True, cwd=cwd
    )


def test_help_lists_every_command_and_loads_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.argv[1:] = ['--help']\n{CHECK}"],
        capture_output=True,
        text=True,
    )
    assert done.stderr == "[]\n"
    for name in installed():
        assert f"\n  {name} " in done.stdout


CHECK = """
from engine.cli.main import main
main()
heavy = {"torch", "hydra", "numpy", "pydantic", "vllm", "yaml"} & set(sys.modules)
print(sorted(heavy), file=sys.stderr)
"""


@pytest.mark.parametrize("name", list(installed()))
def test_every_command_has_help_with_an_example(name: str) -> None:
    done = brood(name, "--help")
    assert done.returncode == 0, done.stderr
    assert f"\n    brood {name} " in done.stdout
    assert "``" not in done.stdout


def test_a_command_is_what_its_module_is(tmp_path: Path) -> None:
    program = tmp_path / "mine.py"
    program.write_text("def run_signal_processing(signal, window_size=20): return 1\n")
    arguments = ["problem=signal", f"program={program}"]
    done = brood("evaluate", *arguments, cwd=tmp_path)
    same = subprocess.run(
        [sys.executable, "-m", "engine.evaluate", *arguments], capture_output=True, text=True
    )
    assert (done.returncode, same.returncode) == (1, 1)
    assert done.stdout.splitlines()[:3] == same.stdout.splitlines()[:3]
    assert "failure" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["evalute"], "unknown command 'evalute'; did you mean evaluate? valid: run, "),
        (["bench", "fanuot"], "unknown benchmark 'fanuot'; did you mean fanout? valid: "),
        (["resume"], "give one folder, as in brood resume runs/NAME"),
        (["resume", "nowhere"], "nowhere is not a run"),
        (["completion", "tcsh"], "shell is 'tcsh'; it must be one of bash, zsh, fish"),
        (["run", "sede=1"], "did you mean seed?"),
        (["evaluate"], "program= is missing"),
    ],
)
def test_wrong_words_are_a_line_and_2(arguments: list[str], says: str, tmp_path: Path) -> None:
    done = brood(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "some"),
    [
        (["ev"], ["evaluate"]),
        (["run", "problem=sig"], ["problem=signal", "problem=signal_causal"]),
        (["run", "budg"], ["budget."]),
        (["run", "budget.cand"], ["budget.candidates="]),
        (["run", "prompts.layout=st"], ["prompts.layout=stable"]),
        (["run", "search.operators.re"], ["search.operators.repair=", "search.operators.rewrite="]),
        (["run", "--multirun", "width.policy=fixed,tu"], ["width.policy=fixed,turboevolve"]),
        (["run", "pipeline.overlap="], ["pipeline.overlap=false", "pipeline.overlap=true"]),
        (["run", "model=smol"], ["model=smollm2"]),
        (["run", "cluster="], ["cluster=none", "cluster=ray", "cluster=split"]),
        (["run", "search.inspirations.policy=p"], ["search.inspirations.policy=parents"]),
        (["run", "islands.schedule.policy="], ["islands.schedule.policy=adaevolve"]),
        (["report", "analysis=pro"], ["analysis=progress"]),
        (["export", "format=d"], ["format=dpo"]),
        (["evaluate", "problem=nop"], []),
        (["nothing", ""], []),
        (["completion", "b"], ["bash"]),
        (["bench", "fan"], ["fanout"]),
    ],
)
def test_what_a_word_may_become(line: list[str], some: list[str]) -> None:
    assert words(line) == some


def test_paths_are_completed_where_they_are_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs" / "one=1").mkdir(parents=True)
    (tmp_path / "run.py").touch()
    (tmp_path / ".hidden").touch()
    monkeypatch.chdir(tmp_path)
    assert words(["resume", ""]) == ["runs/"]
    assert words(["resume", "runs/"]) == ["runs/one=1/"]
    assert words(["evaluate", "program=r"]) == ["program=run.py", "program=runs/"]
    assert words(["run", "problem.path=ru"]) == ["problem.path=run.py", "problem.path=runs/"]
    assert words(["run", "seed="]) == []
    assert "runs/" in words(["report", ""]) and ".hidden" not in words(["report", ""])
    assert words(["report", "~nobody-is-called-so/"]) == []


def test_every_key_that_is_offered_is_one() -> None:
    sections = [each for each in words(["run", ""]) if each.endswith(".")]
    offered = [key for section in sections for key in words(["run", section])]
    assert len(offered) > 60
    for key in offered:
        try:
            config.resolve([f"{key}null"])
        except Exception as error:
            assert "unknown key" not in str(error), error


def test_an_output_that_nobody_reads_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "brood").write_text(f'#!/bin/sh\nexec {sys.executable} -c "{START}" "$@"\n')
    script = (
        (
            "new mine | true; echo ${PIPESTATUS[0]}; rm -r mine; new mine >&-; echo $?; "
            "complete -- run model= | true; echo ${PIPESTATUS[0]}"
        )
        .replace("new ", "sh brood new ")
        .replace("complete ", "sh brood complete ")
    )
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    first, closed, last = map(int, done.stdout.split())
    assert closed == 0 and {first, last} <= {0, UNREAD}
    assert (tmp_path / "mine" / "problem.yaml").is_file()


@pytest.mark.parametrize("seconds", [0.4, 3.0])
def test_ctrl_c_is_a_line_at_most(seconds: float, tmp_path: Path) -> None:
    arguments = ("check", "problem=signal", "runs=10000")
    begins = START.replace("sys.exit", "print('begins', flush=True); sys.exit")
    process = subprocess.Popen(
        [sys.executable, "-c", begins, *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )
    # Before, it is Python's own start that is interrupted, which says so at length.
    assert process.stdout is not None and process.stdout.readline() == "begins\n"
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    error = process.communicate(timeout=SECONDS)[1]
    assert process.returncode in (INTERRUPTED, -signal.SIGINT)
    assert error in ("", "interrupted\n")


def completed_by_bash(line: str, folder: Path) -> list[str]:
    """Return what bash completes a line to, with its own way of cutting words."""
    script = folder / "brood"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{START}" "$@"\n')
    script.chmod(0o755)
    code = (
        'source <(brood completion bash); COMP_LINE="$1" COMP_POINT=${#1}; '
        'COMP_WORDBREAKS="$2"; _brood; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", code, "bash", line, " \t\n\"'><=;|&(:"],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
    )
    assert done.stderr == "", done.stderr
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_keys_and_what_comes_after_the_equals_sign(tmp_path: Path) -> None:
    assert completed_by_bash("brood ev", tmp_path) == ["evaluate"]
    assert completed_by_bash("brood run problem=sig", tmp_path) == ["signal", "signal_causal"]
    assert completed_by_bash("brood run seed=1 budget.cand", tmp_path) == ["budget.candidates="]
    assert "run" in completed_by_bash("brood ", tmp_path)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_their_scripts(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    done = brood("completion", shell)
    checked = subprocess.run([shell, "-n"], input=done.stdout, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr

"""Broken folders in the formats of other systems: each gets a line with file, line and remedy."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from peer_folders import (
    CONFIG,
    EVALUATOR,
    PROGRAM,
    SHINKA_RUN,
    STAGES,
    openevolve,
    shinka,
    write,
)

from engine.core import UserError
from engine.problem import load_problem

BROKEN_CONFIGS = {
    "config.yaml:4: is not valid YAML": "a: 1\nb: 2\nc: [1\n",
    "config.yaml:1: is no mapping": "- a\n- b\n",
    "config.yaml:2: evaluator.timeout is 'soon'": "evaluator:\n  timeout: soon\n",
    "config.yaml:2: evaluator.timeout is -1": "evaluator:\n  timeout: -1\n",
    "config.yaml:3: evaluator.cascade_thresholds is": CONFIG[:0]
    + "evaluator:\n  timeout: 3\n  cascade_thresholds: high\n",
    "config.yaml:2: prompt.system_message is ['a']": "prompt:\n  system_message: [a]\n",
    "config.yaml:1: evaluator is 3": "evaluator: 3\n",
    "config.yaml:2: evaluator.cascade_evaluation is 'no?'": "evaluator:\n"
    "  cascade_evaluation: no?\n",
    "config.yaml:2: evaluator.cascade_thresholds is [99": "evaluator:\n"
    f"  cascade_thresholds: [{'9' * 400}]\n",
    "is 1000000; it must be a number above 0 and below 604,800": "evaluator:\n  timeout: 1000000\n",
    "is 2000000000; it must be a number of at least 1 and below 1,000,000,000": "evaluator:\n"
    "  memory_limit_mb: 2000000000\n",
    "config.yaml:2: evaluator.memory_limit_mb is 0.5; it must be a number of at": "evaluator:\n"
    "  memory_limit_mb: 0.5\n",
    "config.yaml:3: evaluator.evaluator_args.since is datetime.date(2024, 1, 1)": "evaluator:\n"
    "  evaluator_args:\n    since: 2024-01-01\n",
    "config.yaml:2: evaluator.evaluator_args.raw is b'hi'; it must be": "evaluator:\n"
    "  evaluator_args: {raw: !!binary aGk=}\n",
    "config.yaml:2: evaluator.evaluator_args.some is {'a'}; it must be": "evaluator:\n"
    "  evaluator_args: {some: !!set {a}}\n",
    "config.yaml:2: evaluator.evaluator_args.mixed is {1: 2, 'b': 3}; it must be": "evaluator:\n"
    "  evaluator_args: {mixed: {1: 2, b: 3}}\n",
}

BROKEN_EVALUATORS = {
    "evaluator.py:2: does not parse": "def evaluate(path):\n    return {\n",
    "evaluator.py:1: defines no function evaluate": "def score(path):\n    return 1\n",
    "evaluator.py:1: evaluate() takes no argument": "def evaluate():\n    return {}\n",
    "evaluator.py:2: evaluate() needs seed": "\ndef evaluate(path, seed):\n    return {}\n",
    "evaluator.py:1: imports nowhere_to_be_found": "import nowhere_to_be_found.deep\n" + EVALUATOR,
}

BROKEN_PROGRAMS = {
    "initial_program.py:1: is empty": "\n\n",
    "initial_program.py:2: does not parse": "# EVOLVE-BLOCK-START\ndef f(:\n# EVOLVE-BLOCK-END\n",
    "initial_program.py": "# EVOLVE-BLOCK-START\ndef squares(n):\n    return []\n",
}


def refused(folder: Path, **options: str) -> str:
    with pytest.raises(UserError) as refusal:
        load_problem(folder, **options)  # type: ignore[arg-type]
    message = str(refusal.value)
    assert "\n" not in message
    assert ";" in message  # then the remedy
    assert str(folder) in message or folder.name in message
    return message


@pytest.mark.parametrize("said", BROKEN_CONFIGS)
def test_a_broken_configuration(tmp_path: Path, said: str) -> None:
    config = BROKEN_CONFIGS[said]
    assert said in refused(openevolve(tmp_path, config=config, evaluator=EVALUATOR + STAGES))


@pytest.mark.parametrize("said", BROKEN_EVALUATORS)
def test_a_broken_evaluator(tmp_path: Path, said: str) -> None:
    assert said in refused(openevolve(tmp_path, evaluator=BROKEN_EVALUATORS[said]))


@pytest.mark.parametrize("said", BROKEN_PROGRAMS)
def test_a_broken_program(tmp_path: Path, said: str) -> None:
    assert said in refused(openevolve(tmp_path, initial_program=BROKEN_PROGRAMS[said]))


def test_a_program_that_is_no_text(tmp_path: Path) -> None:
    folder = openevolve(tmp_path)
    (folder / "initial_program.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"initial_program\.py can't be read as UTF-8"):
        load_problem(folder)


def test_a_program_whose_ending_no_file_may_have(tmp_path: Path) -> None:
    folder = openevolve(tmp_path, initial_program=None)
    write(folder, {"initial_program.c#": "int squares;\n"})
    assert "initial_program.c#: 'program.c#' is no name of a program's file" in refused(folder)


def test_no_initial_program(tmp_path: Path) -> None:
    assert "add initial_program.py" in refused(openevolve(tmp_path, initial_program=None))


def test_no_evaluator(tmp_path: Path) -> None:
    assert "add evaluator.py" in refused(openevolve(tmp_path, evaluator=None))


@pytest.mark.parametrize("name", ["../notes.md", "{outside}/notes.md", "link.md"])
def test_a_message_in_a_file_elsewhere(tmp_path: Path, name: str) -> None:
    name = name.format(outside=tmp_path)
    folder = openevolve(tmp_path, config=f"prompt:\n  system_message: {name}\n")
    (tmp_path / "notes.md").write_text("Private.\n")
    (folder / "link.md").symlink_to(tmp_path / "notes.md")
    said = f"config.yaml:2: the message names {name}, which is no file of the folder; copy it there"
    assert said in refused(folder)


def test_an_evaluator_in_a_container_alone(tmp_path: Path) -> None:
    folder = openevolve(tmp_path, evaluator=None)
    write(folder, {"evaluator/evaluate.sh": "run\n"})
    assert "evaluate.sh: an evaluator in a container is not run" in refused(folder)


def test_arguments_that_evaluate_does_not_take(tmp_path: Path) -> None:
    config = "evaluator:\n  evaluator_args: {depth: 3}\n"
    message = refused(openevolve(tmp_path, config=config))
    assert "evaluator.py:6: evaluate() takes no depth" in message


def test_a_shinka_script_that_does_not_parse(tmp_path: Path) -> None:
    assert "run_evo.py:1: does not parse" in refused(shinka(tmp_path, run="def f(:\n"))


@pytest.mark.parametrize("hours", ["200", "9" * 400, "9" * 5000])
def test_a_time_of_shinkas_that_is_out_of_range(tmp_path: Path, hours: str) -> None:
    message = refused(shinka(tmp_path, run=SHINKA_RUN.replace("00:01:30", f"{hours}:00:00")))
    assert "run_evo.py:6: time is '" in message
    assert "it must be HOURS:MINUTES:SECONDS, above 0 and below 604,800 s" in message
    assert len(message) < 1000


def test_no_time_at_all(tmp_path: Path) -> None:
    message = refused(shinka(tmp_path, run=SHINKA_RUN.replace("00:01:30", "00:00:00")))
    assert "run_evo.py:6: time is '00:00:00'; it must be" in message


def test_a_folder_that_no_box_can_read(tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        pytest.skip("there is no /dev/shm to write in")
    with tempfile.TemporaryDirectory(dir=memory) as there:
        folder = openevolve(Path(there))
        assert "can't read what lies in /dev/shm" in refused(folder)
        (tmp_path / "link").symlink_to(folder)
        with pytest.raises(UserError, match="keep the problem in another folder"):
            load_problem(tmp_path / "link")


def test_data_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    message = refused(openevolve(tmp_path), data=tmp_path / "data")  # type: ignore[arg-type]
    assert "reads no data" in message


def test_an_own_problem_names_its_score(tmp_path: Path) -> None:
    write(tmp_path / "own", {"problem.yaml": "", "initial.py": PROGRAM})
    assert "leave metric=x out" in refused(tmp_path / "own", metric="x")

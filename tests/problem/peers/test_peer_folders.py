"""Folders of other systems become problems, without anything in them being executed."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest
from peer_folders import CONFIG, EVALUATOR, PROGRAM, STAGES, openevolve, shinka, skydiscover, write

from engine.core import Direction, JudgeKind, Problem
from engine.core.bundle import files_of
from engine.judge.setup import Setup
from engine.problem import load_problem, read_direction, read_features


def setup_of(problem: Problem) -> Setup:
    assert problem.judge is not None
    return Setup.from_json(problem.judge.setup)


def test_an_openevolve_folder(tmp_path: Path) -> None:
    folder = openevolve(tmp_path)
    problem = load_problem(folder)
    assert problem.judge is not None
    assert (problem.name, problem.folder, problem.entry_point) == ("squares", folder, "squares")
    assert problem.statement == "Write squares(count)."
    assert problem.initial_program == PROGRAM
    assert problem.direction is read_direction(folder) is Direction.MAXIMISE
    assert (problem.limits.seconds, read_features(folder)) == (20.0, ())
    assert problem.judge.kind is JudgeKind.SPLIT
    setup = setup_of(problem)
    assert (setup.contract, setup.metric) == ("openevolve", "combined_score")
    assert setup.stages == (("evaluate", None),)
    assert Path(setup.evaluator) == folder / "evaluator.py"


def test_a_skydiscover_folder(tmp_path: Path) -> None:
    folder = skydiscover(tmp_path)
    problem = load_problem(folder)
    assert Path(setup_of(problem).evaluator) == folder / "evaluator" / "evaluator.py"
    assert (problem.statement, problem.initial_program) == ("Write squares(count).", PROGRAM)


def test_a_shinka_folder(tmp_path: Path) -> None:
    problem = load_problem(shinka(tmp_path))
    assert setup_of(problem).contract == "shinka"
    assert problem.statement.startswith("Return the first square numbers. Start at 0.")
    assert (problem.entry_point, problem.limits.seconds) == ("squares", 90.0)


def test_a_shinka_task_that_is_a_long_sum(tmp_path: Path) -> None:
    task = f"dedent({' + '.join(['name'] * 1500)}).strip() + f' {{name}}.'"
    run = f"name = 'squares '\ntask_sys_msg = {task}\n"
    assert load_problem(shinka(tmp_path, run=run)).statement == f"{'squares ' * 1501}."


def test_a_shinka_task_in_yaml(tmp_path: Path) -> None:
    folder = shinka(tmp_path, run="")
    write(folder, {"conf/task.yaml": "", "variant.yaml": "evo:\n  task_sys_msg: From YAML.\n"})
    assert load_problem(folder).statement.startswith("From YAML.")


def test_nothing_is_executed(tmp_path: Path) -> None:
    bomb = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    folder = openevolve(tmp_path, evaluator=EVALUATOR + bomb, initial_program=PROGRAM + bomb)
    write(folder, {"run_evo.py": bomb})
    load_problem(folder)
    assert not (tmp_path / "ran").exists()


def test_without_a_configuration_the_readme_tells_the_task(tmp_path: Path) -> None:
    folder = openevolve(tmp_path, config=None)
    readme = "# Squares\n\n![picture](a.png)\n\n```\ncode\n```\n\nFind the\nsquares.\n\nMore.\n"
    write(folder, {"README.md": readme})
    problem = load_problem(folder)
    assert problem.statement.startswith("Find the squares.")
    assert problem.limits.seconds == 300.0


def test_without_a_readme_the_docstring_tells_the_task(tmp_path: Path) -> None:
    problem = load_problem(openevolve(tmp_path, config=None))
    assert problem.statement.startswith("How near a list is to the square numbers.")


def test_the_message_may_be_in_a_file(tmp_path: Path) -> None:
    folder = openevolve(tmp_path, config="prompt: {system_message: task.txt}\n")
    write(folder, {"task.txt": "From a file: squares.\n"})
    assert load_problem(folder).statement == "From a file: squares."


def test_stages_have_the_configured_thresholds(tmp_path: Path) -> None:
    folder = openevolve(tmp_path, evaluator=EVALUATOR + STAGES)
    stages = (("evaluate_stage1", 0.3), ("evaluate_stage2", None))
    assert setup_of(load_problem(folder)).stages == stages
    off = CONFIG + "  cascade_evaluation: false\n"
    write(folder, {"config.yaml": off})
    assert setup_of(load_problem(folder)).stages == (("evaluate", None),)


def test_a_first_stage_alone_is_all_that_is_called(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As OpenEvolve's ``_cascade_evaluate``, which returns where there is no second stage."""
    third = STAGES.replace("stage2", "stage3")  # is never come to
    folder = openevolve(tmp_path, evaluator=EVALUATOR + third)
    with caplog.at_level(logging.INFO, "brood"):
        assert setup_of(load_problem(folder)).stages == (("evaluate_stage1", None),)
    assert any("evaluate_stage1 is all that is called" in each for each in caplog.messages)
    write(folder, {"config.yaml": CONFIG + "  cascade_evaluation: false\n"})
    assert setup_of(load_problem(folder)).stages == (("evaluate", None),)


def test_a_third_stage_needs_a_second_threshold(tmp_path: Path) -> None:
    third = EVALUATOR + STAGES + STAGES.replace("stage2", "stage3").replace("stage1", "other")
    folder = openevolve(tmp_path, evaluator=third)
    stages = (("evaluate_stage1", 0.3), ("evaluate_stage2", 0.6), ("evaluate_stage3", None))
    assert setup_of(load_problem(folder)).stages == stages
    write(folder, {"config.yaml": "evaluator: {cascade_thresholds: [0.3]}\n"})
    assert setup_of(load_problem(folder)).stages == (stages[0], ("evaluate_stage2", None))


def test_a_memory_limit_has_no_bound_of_seconds(tmp_path: Path) -> None:
    folder = openevolve(tmp_path, config=CONFIG + "  memory_limit_mb: 700000\n")
    assert load_problem(folder).limits.memory_bytes == 700_000 << 20


SECRETS = {
    **dict.fromkeys(
        ("DB_PASS", "MYSQL_PWD", "GPG_PASSPHRASE", "SSH_PRIVATE", "SENTRY_DSN"), "hush"
    ),
    **dict.fromkeys(("SSHPASS", "GH_PAT", "CI_JWT", "SESSION_COOKIE", "HOOK_WEBHOOK"), "hush"),
    "DATABASE_URL": "postgres://me:hush@here/base",
    "STORE_URI": "https://here/store?token=hush",
    "CONNECTION": "Server=here;Password=hush",
}
HARMLESS = {
    **dict.fromkeys(("N_PASSES", "PASS_RATE", "COMPASS", "BYPASS", "PATIENCE", "TASK"), "3"),
    "PWD": "/here",
    "DATA_URL": "https://here/data?size=3",
}


def test_no_secret_reaches_an_evaluator_or_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "".join(f"os.environ.get({name!r})\n" for name in (*SECRETS, *HARMLESS))
    folder = openevolve(tmp_path, evaluator=f"import os\n{EVALUATOR}\n{asked}")
    for name, value in (SECRETS | HARMLESS).items():
        monkeypatch.setenv(name, value)
    with caplog.at_level(logging.INFO, "brood"):
        problem = load_problem(folder)
    assert setup_of(problem).environment == HARMLESS
    (line,) = [each for each in caplog.messages if "the evaluator is given" in each]
    assert line.endswith(f"the environment's {', '.join(sorted(HARMLESS))}")


def test_a_metric_may_be_named(tmp_path: Path) -> None:
    problem = load_problem(openevolve(tmp_path), metric="right")
    assert setup_of(problem).metric == "right"
    assert problem.fingerprint != load_problem(problem.folder).fingerprint


@pytest.mark.parametrize(
    ("import_", "call", "what"),
    [
        ("import subprocess as sp", "sp.run(['true'])", "subprocess.run"),
        ("from subprocess import check_output as go", "go('true')", "subprocess.check_output"),
        ("import os", "os.system('true')", "os.system"),
        ("", "exec(open(program_path).read(), {})", "exec"),
        ("", "eval('1')", "eval"),
        ("import pickle", "pickle.load(open('x', 'rb'))", "pickle.load"),
        ("import numpy as np", "np.load('x', allow_pickle=True)", "numpy.load"),
        ("from sympy import sympify", "sympify('x')", "sympy.sympify"),
    ],
)
def test_what_can_not_be_split_runs_together(
    tmp_path: Path, import_: str, call: str, what: str
) -> None:
    text = f"{import_}\n\ndef helper(program_path):\n    return {call}\n\n"
    text += "def evaluate(program_path):\n    return helper(program_path)\n"
    problem = load_problem(openevolve(tmp_path, evaluator=text))
    assert problem.judge is not None
    assert problem.judge.kind is JudgeKind.TOGETHER
    assert f"evaluator.py:4: the evaluator {setup_of(problem).joined_by.split(' ', 3)[3]}"
    assert what in setup_of(problem).joined_by


@pytest.mark.parametrize(
    "extra",
    [
        "def unused():\n    import subprocess\n    subprocess.run(['true'])\n",
        "if __name__ == '__main__':\n    import os\n    os.system('true')\n",
        "import re\nPATTERN = re.compile('x')\n",
        "class Model:\n    def eval(self):\n        return 1\n\nMODEL = Model().eval()\n",
    ],
)
def test_what_is_never_reached_can_be_split(tmp_path: Path, extra: str) -> None:
    problem = load_problem(openevolve(tmp_path, evaluator=EVALUATOR + "\n\n" + extra))
    assert problem.judge is not None
    assert problem.judge.kind is JudgeKind.SPLIT


def test_a_neighbour_is_looked_through_too(tmp_path: Path) -> None:
    folder = openevolve(tmp_path, evaluator="from checks import run\n" + EVALUATOR)
    write(folder, {"checks.py": "import os\n\ndef run(path):\n    os.system(path)\n"})
    assert "checks.py" not in setup_of(load_problem(folder)).joined_by  # nobody calls it
    write(folder, {"evaluator.py": EVALUATOR.replace("found =", "run('x')\n    found =")})
    write(
        folder, {"evaluator.py": "from checks import run\n" + (folder / "evaluator.py").read_text()}
    )
    assert "checks.py:4: the evaluator starts a process" in setup_of(load_problem(folder)).joined_by


def test_programs_may_import_what_the_initial_one_does(tmp_path: Path) -> None:
    program = "import helpers.tools\n" + PROGRAM + "if __name__ == '__main__':\n    import secret\n"
    folder = openevolve(tmp_path, initial_program=program)
    write(
        folder,
        {
            "helpers/__init__.py": "",
            "helpers/tools.py": "import beside\n",
            "beside.py": "NUMBER = 3\n",
            "secret.py": "ANSWER = 4\n",
        },
    )
    assert set(setup_of(load_problem(folder)).neighbours) == {
        "helpers",
        "helpers.tools",
        "beside",
    }


def test_a_program_of_another_language_has_one_named_file(tmp_path: Path) -> None:
    folder = openevolve(tmp_path, initial_program=None)
    write(folder, {"initial_program.rs": "// EVOLVE-BLOCK-START\nfn f() {}\n// EVOLVE-BLOCK-END\n"})
    problem = load_problem(folder)
    assert problem.judge is not None
    assert [*files_of(problem.initial_program)] == ["program.rs"]
    assert problem.judge.kind is JudgeKind.TOGETHER


def test_the_fingerprint_follows_the_files(tmp_path: Path) -> None:
    folder = openevolve(tmp_path)
    first = load_problem(folder).fingerprint
    write(folder, {"__pycache__/x.pyc": "x", "openevolve_output/log": "x", ".hidden": "x"})
    assert load_problem(folder).fingerprint == first
    write(folder, {"data/points.csv": "1\n"})
    second = load_problem(folder).fingerprint
    (folder / os.fsdecode(b"\xff.csv")).write_text("1\n")  # a name that is no UTF-8
    third = load_problem(folder).fingerprint
    (folder / os.fsdecode(b"\xff.csv")).rename(folder / os.fsdecode(b"\xfe.csv"))
    assert len({first, second, third, load_problem(folder).fingerprint}) == 4


def test_what_is_ignored_is_said_in_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "brood"):
        load_problem(openevolve(tmp_path))
    (line,) = [each for each in caplog.messages if "engine has its own" in each]
    assert line.endswith("ignored, as this engine has its own: llm, max_iterations")


def test_the_setup_survives_its_text(tmp_path: Path) -> None:
    setup = setup_of(load_problem(openevolve(tmp_path, evaluator=EVALUATOR + STAGES)))
    assert Setup.from_json(setup.to_json()) == setup
    assert json.loads(setup.to_json())["contract"] == "openevolve"

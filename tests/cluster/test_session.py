"""Runs on a cluster that can't go on: a line says why, before anything is started."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from command import run
from hand_log import fill

from engine import config
from engine.beginning import begun_session
from engine.cluster.islands import island_settings
from engine.cluster.places import is_on_cluster, island_folder
from engine.cluster.session import report, summarised
from engine.core import (
    INITIAL,
    Direction,
    Evaluation,
    Event,
    Migrant,
    Session,
)
from engine.core.bundle import files_of
from engine.parts import read_problem
from engine.problem import shipped
from engine.settings import RunSettings
from engine.store import Recorded, RunHistory, Verdict, create_run, locked
from engine.syntax import read

ISLANDS = 3
SESSION = """
import sys
from pathlib import Path

from engine import config
from engine.cluster import session
from engine.parts import read_problem
from engine.session import log_to_terminal


class Driver:
    islands, workers, version, are_over, has_reached_target = {}, 1, None, IS_OVER, False

    def __init__(self, settings, *, folder, problem): pass
    def run(self, *, stopped, show): show()
    def close(self): pass


log_to_terminal()
session.Driver = Driver
folder = Path(sys.argv[1])
settings = config.load_run(folder)
problem = read_problem(settings)
sys.exit(session._session(settings, problem, folder, founds=False, keep=lambda: None))
"""
"""A session at a terminal, whose driver has nothing to do."""


def settings_of(tmp_path: Path, *more: str) -> RunSettings:
    """The settings of a run of a problem that the test may change, but for ``more``."""
    shutil.copytree(shipped()["signal"], problem := tmp_path / "problem")
    return config.resolve(
        [
            *(f"problem.path={problem}", "model=mutation", "fill=none", "cluster=ray"),
            *(f"islands.count={ISLANDS}", "budget.candidates=6", "evaluation.workers=1", *more),
        ]
    )


def founded(tmp_path: Path, *more: str) -> Path:
    """A run as it stands when its islands are founded, and nothing else is done."""
    settings, folder = settings_of(tmp_path, *more), tmp_path / "run"
    problem = read_problem(settings)
    evaluation = Evaluation(score=0.5, failure=None, metrics={"score": 0.5})
    first = Verdict(candidate=INITIAL, evaluation=evaluation, program=problem.initial_program)
    for number in range(ISLANDS):
        create_run(
            island_folder(folder, number),
            write_config=partial(config.save, island_settings(settings, number)),
            events=[begun_session(0, problem), first],
        )
    config.save(settings, folder / "config.yaml")
    return folder


def refused(folder: Path) -> str:
    """Why a run doesn't go on."""
    done = run(f"resume={folder}", scratch=folder.parent / "scratch")
    assert done.returncode == 2 and not done.stdout, done.stdout + done.stderr
    return done.stderr.splitlines()[-1]


def test_a_run_whose_problem_has_changed_does_not_go_on(tmp_path: Path) -> None:
    folder = founded(tmp_path)
    with (tmp_path / "problem" / "evaluator.py").open("a") as file:
        file.write("# changed\n")
    line = refused(folder)
    assert f"has changed since {folder} began" in line and "would not compare" in line


def test_a_run_that_was_killed_while_its_workers_loaded_was_never_begun(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    config.save(settings_of(tmp_path), folder / "config.yaml")
    assert f"{folder} was never begun; remove it" in refused(folder)


def test_a_run_that_lacks_an_island_does_not_go_on(tmp_path: Path) -> None:
    folder = founded(tmp_path)
    shutil.rmtree(island := island_folder(folder, 1))
    assert f"{island} is not there; bring it back" in refused(folder)


def test_a_run_that_another_process_works_on_is_left_to_it(tmp_path: Path) -> None:
    folder = founded(tmp_path)
    with locked(folder):
        assert f"another process works on {folder}" in refused(folder)


def test_an_island_is_no_run_on_a_cluster(tmp_path: Path) -> None:
    folder = founded(tmp_path)
    assert is_on_cluster(folder) and not is_on_cluster(island_folder(folder, 0))
    assert not is_on_cluster(tmp_path) and not is_on_cluster(tmp_path / "nowhere")


def test_the_best_program_of_a_run_may_have_several_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = founded(tmp_path, f"problem.path={shipped()['protein_fitness']}")
    settings = config.load_run(folder)
    problem = read_problem(settings)
    report(settings, problem, folder)
    for name, text in files_of(problem.initial_program).items():
        assert (folder / "best" / name).read_text(encoding="utf-8") == text
    assert not (folder / "best.py").exists()
    assert f"Everything is in {folder}: best/, summary.json" in capsys.readouterr().out


@pytest.mark.parametrize(("is_over", "code"), [(True, 0), (False, 130)])
def test_an_output_that_is_lost_does_not_end_a_run(
    tmp_path: Path, is_over: bool, code: int
) -> None:
    folder = founded(tmp_path)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", SESSION.replace("IS_OVER", str(is_over)), str(folder)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == code, done.stderr
    assert done.stderr.count("the output can't be written: No space left on device") == 1
    assert (folder / "summary.json").is_file()


def test_the_summary_says_who_made_the_best_program_and_what_fills_found() -> None:
    program = read("def f(x):\n    return x\n")
    assert program is not None

    def history(number: int, *events: Event) -> RunHistory:
        first = Verdict(candidate=INITIAL, evaluation=worth(0.5), program=program.text)
        found = RunHistory(direction=Direction.MAXIMISE)
        for event in (Session(number=0, engine="0", fingerprint=""), first, *events):
            found.fold(Recorded(session=0, elapsed=0.0, event=event))
        return found

    def worth(score: float) -> Evaluation:
        return Evaluation(score=score, failure=None, seconds=2.0)

    tuned = fill(0, INITIAL, "tuning", program.text)
    migrant = Migrant(number=0, origin=1, candidate=tuned.id, program=program)
    summary = summarised(
        {
            0: history(0, migrant, Verdict(candidate=migrant.id, evaluation=worth(0.9))),
            1: history(1, tuned, Verdict(candidate=tuned.id, evaluation=worth(0.9))),
            2: history(2, tuned, Verdict(candidate=tuned.id, evaluation=worth(0.4))),
        },
        read_problem(config.resolve(["problem=signal"])),
    )
    assert (summary["best_island"], summary["best_made_by"]) == (1, "tuning")
    assert summary["fills"] == {
        "tuning": {"judged": 2, "valid": 2, "better": 1, "seconds": 4.0, "best_score": 0.9}
    }

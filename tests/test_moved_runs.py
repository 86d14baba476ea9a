"""A run's folder that was copied to another machine: it goes on there, or says why not."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from command import assert_complete, run

import engine
from engine import config
from engine.core import UserError
from engine.problem import shipped
from engine.report.__main__ import main as report
from engine.run import main

CANDIDATES = 100  # more than may be at the evaluators, so that a stopped run is not over


def begun(tmp_path: Path, *arguments: str) -> Path:
    """Make a run that was stopped before its end."""
    settings = config.resolve(
        [
            *(
                "model=mutation",
                "fill=none",
                "pipeline.speculate=false",
                f"budget.candidates={CANDIDATES}",
            ),
            *(f"runs={tmp_path / 'runs'}", "name=one", "seed=1", *arguments),
        ]
    )
    with engine.Run.start(settings) as one:
        one.evolve(stopped=lambda: one.history.evaluated >= 3)
        assert not one.is_over
    return tmp_path / "runs" / "one"


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """A run of a problem of the user's own, both at other places than they were."""
    problem = tmp_path / "here" / "mine"
    shutil.copytree(shipped()["signal"], problem)
    folder = begun(tmp_path / "here", f"problem.path={problem}")
    (tmp_path / "there").mkdir()
    shutil.move(folder, tmp_path / "there" / "one")
    shutil.move(problem, tmp_path / "there" / "problem")
    return tmp_path / "there" / "one"


def test_a_run_goes_on_where_its_problem_lies_elsewhere(moved: Path, tmp_path: Path) -> None:
    done = run(f"resume={moved}", scratch=tmp_path / "scratch")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and line.endswith("here; give its folder as problem.path=FOLDER")
    problem = moved.parent / "problem"
    done = run(f"problem.path={problem}", f"resume={moved}", scratch=tmp_path / "scratch")
    assert done.returncode == 0, done.stderr
    assert_complete(moved, candidates=CANDIDATES)


def test_another_problem_at_the_new_place_is_refused(moved: Path) -> None:
    problem = moved.parent / "problem"
    with (problem / "evaluator.py").open("a") as file:
        file.write("\n# another one\n")
    with (
        pytest.raises(UserError, match="has changed since"),
        engine.Run.resume(moved, changes=[f"problem.path={problem}"]),
    ):
        pass


def test_a_shipped_problem_is_found_by_its_name(tmp_path: Path) -> None:
    folder = begun(tmp_path, "problem=signal")
    values = yaml.safe_load((folder / "config.yaml").read_text())
    values["problem"] = "/srv/elsewhere/evaluators/signal"
    (folder / "config.yaml").write_text(yaml.safe_dump(values))
    assert report([str(folder), "analysis=progress"]) == 0
    with engine.Run.resume(folder) as one:
        assert one.problem.folder == shipped()["signal"]
        assert one.evolve().evaluated == CANDIDATES


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("seed=2", "so seed= can't be given with resume="),
        ("budget.candidates=99", "so budget.candidates= can't be given"),
        ("model.threads=many", "model.threads is 'many'; it must be a whole number"),
        ("problem.path=nowhere", "is not at "),
        ("problem.path=null", "problem.path is None; it must be a folder"),
        ("model.cache_dir=null", "model.cache_dir is None"),
    ],
)
def test_only_what_a_machine_decides_is_given_anew(
    change: str, words: str, recorded_run: Path
) -> None:
    with pytest.raises(UserError, match=words), engine.Run.resume(recorded_run, changes=[change]):
        pass


def test_a_sweep_goes_on_as_it_was_configured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sweep.yaml").touch()
    assert main([f"resume={tmp_path}", "problem.path=elsewhere"]) == 2
    assert "leave problem.path=elsewhere away" in capsys.readouterr().err


def test_a_machine_with_other_places_and_cores(recorded_run: Path, tmp_path: Path) -> None:
    changes = [f"model.cache_dir={tmp_path}/m", "model.threads=1", f"cache.folder={tmp_path}/kv"]
    settings = config.load_resumed(recorded_run, changes=changes)
    assert settings.model.cache_dir == f"{tmp_path}/m"
    assert settings.model.threads == 1
    assert settings.cache.folder == f"{tmp_path}/kv"
    assert config.load_run(recorded_run).model.threads is None  # as it began: nothing is rewritten


def test_the_number_of_a_servers_process_is_not_believed_later(recorded_run: Path) -> None:
    values = yaml.safe_load((recorded_run / "config.yaml").read_text())
    values["cache"] |= {"server": "127.0.0.1:5555", "server_pid": 4242}
    (recorded_run / "config.yaml").write_text(yaml.safe_dump(values))
    assert config.load_run(recorded_run).cache.server_pid == 4242
    cache = config.load_resumed(recorded_run).cache
    assert (cache.server, cache.server_pid) == ("127.0.0.1:5555", None)
    again = config.load_resumed(recorded_run, changes=["cache.server_pid=77"])
    assert again.cache.server_pid == 77


def test_a_call_that_was_cut_short_and_would_be_another_one_here(tmp_path: Path) -> None:
    folder = begun(tmp_path, "problem=signal")
    with closing(sqlite3.connect(folder / "run.db")) as db:
        (last,) = db.execute("SELECT max(seq) FROM events WHERE kind = 'call'").fetchone()
        db.execute("DELETE FROM events WHERE seq > ?", [last])  # killed there
        changed = "json_set(body, '$.prompt', 'what another version asked')"
        db.execute(f"UPDATE events SET body = {changed} WHERE seq = ?", [last])
        db.commit()
    with (
        pytest.raises(UserError, match="was cut short, and its prompt would be another one here"),
        engine.Run.resume(folder) as one,
    ):
        one.evolve()

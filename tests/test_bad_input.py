"""Bad input to ``engine.run``: one line that says what to do, exit code 2, nothing left behind.

What the main process alone can see is tested in this process, which saves two seconds a case.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from command import processes_in, run
from hand_log import fill

from engine.core import INITIAL, Evaluation
from engine.problem import shipped
from engine.run import main
from engine.store import Call, Child, EventLog, Verdict
from engine.syntax import read

PROBLEMS = ", ".join(sorted(shipped()))
Refused = Callable[..., str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which the command is typed; runs/ would be made in it."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def refused(here: Path, capfd: pytest.CaptureFixture[str]) -> Refused:
    """Return a function that has `main` refuse its arguments, and returns the message."""

    def refuse(*arguments: str) -> str:
        assert main(arguments) == 2
        assert list(here.iterdir()) == []
        out, err = capfd.readouterr()
        assert out == ""
        return one_error(err)

    return refuse


def one_error(err: str) -> str:
    """Return the message of a standard error that is one line ``error: MESSAGE``."""
    assert err.startswith("error: ") and err.count("\n") == 1 and err.endswith("\n"), err
    return err.removeprefix("error: ").removesuffix("\n")


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (
            "problem=nonsense",
            f"unknown problem 'nonsense'; valid: {PROBLEMS} (",
        ),
        (
            "model=nonsense",
            "unknown model 'nonsense'; valid: derived, mutation, qwen3_5_4b, qwen3_6_27b, "
            "qwen3_6_35b_a3b, qwen3_coder_30b, smollm2",
        ),
        ("search.kk=8", "unknown key 'search.kk'; did you mean search.k? or "),
        ("+more=1", "adds or removes a key"),
        ("signal", "key=value"),
        ("seed=1,2", "add --multirun"),
        ("search.k=0", "search.k is 0; it must be 1 or more"),
        ("search.k=eight", "search.k is 'eight'; it must be a whole number"),
        ("budget.candidates=-1", "budget.candidates is -1; it must be 0 or more"),
        ("budget.seconds=-0.5", "budget.seconds is -0.5; it must be 0 or more"),
        ("budget.tokens=1e6", "budget.tokens is 1000000.0; it must be a whole number, or null"),
        ("budget.money=5", "budget.money is 5.0; it must be null as long as all budget.prices"),
        ("budget.patience=0", "budget.patience is 0; it must be 1 or more"),
        ("budget.target=best", "budget.target is 'best'; it must be a finite number, or null"),
        ("budget.prices.prompt=-1", "budget.prices.prompt is -1; it must be 0 or more"),
        ("budget.price.prompt=1", "did you mean budget.prices.prompt? or "),
        ("seed=-1", "seed is -1; it must be 0 or more"),
        ("evaluation.workers=0", "evaluation.workers is 0; it must be 1 or more"),
        ("islands.count=0", "islands.count is 0; it must be 1 or more"),
        ("pool.sources=nowhere", "nowhere is not a folder; give a folder of programs or a run's"),
        ("pool.sources=[3]", "pool.sources is 3; it must be folders"),
        ("islands.migrants=0", "islands.migrants is 0; it must be 1 or more"),
        ("pipeline.speculate=maybe", "pipeline.speculate is 'maybe'; it must be true or false"),
        ("pipeline.children=0", "pipeline.children is 0; it must be 1 or more, or null"),
        ("evaluation.strict=2", "evaluation.strict is 2; it must be true or false"),
        ("evaluation.cascade.audit=0", "evaluation.cascade.audit is 0; it must be 0.001 or more"),
        ("data=/no/such/file", "data /no/such/file does not exist; give data=PATH"),
        ("data=/dev/null", "problem signal reads no data; leave data=/dev/null out"),
        ("problem.path=/no/such/folder", "/no/such/folder does not exist"),
        ("model.path=/no/such/folder", "'/no/such/folder' does not exist; give model.path"),
        ("model.path=someone/some-model", "is not on this machine"),
        ("learning=foo", "unknown learning 'foo'; valid: entropic, expert, grpo, max_at_k, "),
        ("learning.rank=7", "learning.rank is 7; it must be 8, 16, 32, 64, 128 or 256"),
        ("resume=/no/such/folder", "/no/such/folder is not a run"),
    ],
)
def test_a_wrong_argument_is_named(refused: Refused, argument: str, words: str) -> None:
    assert words in refused(argument)


@pytest.mark.parametrize("key", ["problem.path", "data", "model.path", "pool.sources", "resume"])
def test_a_path_that_the_system_refuses(refused: Refused, key: str) -> None:
    path = f"/{'x' * 300}"
    message = refused(f"{key}={path}")
    assert path in message and "can't be used: File name too long; give another path" in message


def test_a_width_that_cannot_learn_from_listed_answers(refused: Refused) -> None:
    message = refused("width.policy=cost_aware", "search.operators.verbalized=1")
    assert "width.policy is 'cost_aware'; it must be fixed or turboevolve with" in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["model=mutation"], "learning.method is 'grpo'; it must be none with model=mutation"),
        (
            ["search.operators.verbalized=1"],
            "search.operators.verbalized is 1.0; it must be 0 while the model learns",
        ),
        (
            ["learning=mean_baseline", "model.engine.tensor_parallel_size=2"],
            "model.engine.tensor_parallel_size is 2; it must be 1 while the model learns",
        ),
        (["model.top_p=0.9"], "model.top_p is 0.9; it must be 1 while the model learns"),
        (
            ["search.temperature_min=0.009"],
            "search.temperature_min is 0.009; it must be at least 0.01 while the model learns",
        ),
        (["learning.best_of=1"], "learning.best_of is 1; it must be 2 or more"),
    ],
)
def test_what_a_model_cannot_learn_with(refused: Refused, arguments: list[str], words: str) -> None:
    assert words in refused("learning=grpo", *arguments)


def test_a_worker_with_fewer_gpus_than_its_model_takes(refused: Refused) -> None:
    two = "model.engine.tensor_parallel_size=2"
    message = refused("cluster=ray", "cluster.gpus=1", "model=qwen3_coder_30b", two)
    assert f"cluster.gpus is 1; it must be 2 with {two}" in message


def test_a_sweep_is_checked_before_its_first_run(refused: Refused) -> None:
    assert "search.k is 0" in refused("--multirun", "search.k=8,0", "seed=0,1")
    assert "unknown key 'foo'" in refused("-m", "foo=1,2")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["seed=0,0,1"], "2 runs of the sweep would be named 'seed=0'; give a value once"),
        (["seed=1,1"], "2 runs of the sweep would be named 'only'"),
        (["problem.path=evaluators/a,evaluators-a"], "would be named 'problem.path=evaluators-a'"),
        ([f"runs={'x' * 200},y"], "name is 'runs=xxx"),
    ],
)
def test_a_sweep_whose_runs_have_no_names_of_their_own_begins_none(
    refused: Refused, arguments: list[str], words: str
) -> None:
    assert words in refused("--multirun", "model=mutation", "budget.candidates=1", *arguments)


def test_a_problem_folder_without_its_files(refused: Refused, tmp_path: Path) -> None:
    folder = tmp_path / "problem"
    shutil.copytree(shipped()["signal"], folder)
    (folder / "evaluator.py").unlink()
    assert "has no evaluator.py; it needs problem.yaml, " in refused(f"problem.path={folder}")


def test_an_archive_of_features_that_no_problem_names(refused: Refused) -> None:
    message = refused("problem=circle_packing", "model=mutation", "search.archive=problem")
    assert "problem.yaml with features" in message


def test_a_feature_that_the_initial_program_lacks(
    here: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "problem"
    shutil.copytree(shipped()["signal"], folder)
    declared = (folder / "problem.yaml").read_text().replace("lag_error:", "lag_eror:")
    (folder / "problem.yaml").write_text(declared)
    arguments = (f"problem.path={folder}", "model=mutation", "search.archive=problem")
    assert main([*arguments, "evaluation.workers=1"]) == 2
    message = one_error(capfd.readouterr().err.splitlines(keepends=True)[-1])
    assert "has no feature 'lag_eror'; it has branches, calls, " in message
    assert list(here.iterdir()) == []


def test_a_folder_that_is_not_a_run(refused: Refused, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert f"{folder} is not a run" in refused(f"resume={folder}")
    assert list(folder.iterdir()) == []
    assert "is not a run" in refused("resume=")


def test_a_name_that_is_taken(refused: Refused, recorded_run: Path) -> None:
    before = sorted(recorded_run.iterdir())
    message = refused(f"runs={recorded_run.parent}", f"name={recorded_run.name}")
    assert f"go on with resume={recorded_run}" in message
    assert sorted(recorded_run.iterdir()) == before


def test_resume_takes_no_other_key(refused: Refused, recorded_run: Path) -> None:
    words = "a run goes on as it was configured, so seed= can't be given"
    assert words in refused(f"resume={recorded_run}", "seed=1")
    assert words in refused("seed=1", f"resume={recorded_run}")


def test_a_run_that_another_process_works_on(refused: Refused, recorded_run: Path) -> None:
    with EventLog(recorded_run):
        assert "another process works on" in refused(f"resume={recorded_run}")


def test_a_run_whose_problem_has_changed(refused: Refused, recorded_run: Path) -> None:
    problem = recorded_run.parent / "mine"
    shutil.copytree(shipped()["signal"], problem)
    config = recorded_run / "config.yaml"
    config.write_text(
        yaml.safe_dump(yaml.safe_load(config.read_text()) | {"problem": str(problem)})
    )
    (problem / "statement.md").write_text("Something else.\n")
    assert "has changed since" in refused(f"resume={recorded_run}")
    shutil.rmtree(problem)
    assert f"is not at {problem} here" in refused(f"resume={recorded_run}")


@pytest.mark.parametrize("text", ["", "a: [", "seed: 1\n", "- 1\n", "\udcff"])
def test_a_run_whose_settings_are_damaged(refused: Refused, recorded_run: Path, text: str) -> None:
    (recorded_run / "config.yaml").write_text(text, errors="surrogateescape")
    refused(f"resume={recorded_run}")


def test_a_log_that_is_no_database(refused: Refused, recorded_run: Path) -> None:
    (recorded_run / "run.db").write_bytes(b"nothing of the kind " * 100)
    assert "run.db is not the log of a run" in refused(f"resume={recorded_run}")
    (recorded_run / "run.db").write_bytes(b"")
    assert "run.db is not the log of a run" in refused(f"resume={recorded_run}")
    (recorded_run / "run.db").unlink()
    assert "it has no run.db" in refused(f"resume={recorded_run}")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE events SET body = '{\"nothing\": 1}'", "run.db is damaged"),
        ("UPDATE events SET body = 'x' WHERE kind = 'verdict'", "run.db is damaged"),
        ("UPDATE events SET kind = 'something'", "run.db is damaged"),
        ("UPDATE events SET elapsed = 9e999", "run.db is damaged: event 1 has no session or no"),
        (
            "UPDATE events SET body = json_set(body, '$.program', NULL) WHERE kind = 'verdict'",
            "log is damaged: the initial program is missing",
        ),
        ("DELETE FROM events", "log is damaged: it has no beginning"),
        ("DELETE FROM events WHERE kind = 'verdict'", "log is damaged: it has no beginning"),
        ("DELETE FROM events WHERE kind = 'session'", "log is damaged: it has no beginning"),
        ("DROP TABLE events", "run.db is not the log of"),
        ("PRAGMA user_version = 99", "schema 99"),
    ],
)
def test_a_log_that_is_damaged(
    refused: Refused, recorded_run: Path, change: str, words: str
) -> None:
    db = sqlite3.connect(recorded_run / "run.db")
    db.executescript(change)
    db.close()
    assert words in refused(f"resume={recorded_run}")


@pytest.fixture
def run_with_a_child(recorded_run: Path) -> Path:
    """The recorded run with a call, its child and the child's verdict."""
    call = Call(
        iteration=0,
        island=0,
        parent=INITIAL,
        rule="elite",
        operator="rewrite",
        k=1,
        known=2,
        guessed=False,
        prompt="",
        prompt_tokens=0,
        temperatures=(1.0,),
        seeds=(0,),
    )
    child = Child(
        id="0.0",
        iteration=0,
        index=0,
        parent=INITIAL,
        operator="rewrite",
        completion="",
        completion_ids=(),
        finish_reason="stop",
        program=read("x = 1\n"),
        refusal=None,
        prompt_tokens=0,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )
    with EventLog(recorded_run, session=0) as log:
        for event in (
            call,
            child,
            Verdict(candidate="0.0", evaluation=Evaluation(score=0.6, failure=None)),
        ):
            log.append(event)
        log.commit()
    return recorded_run


@pytest.mark.parametrize("lost", ["kind = 'verdict' AND subject = '0.0'", "subject = '0.0'"])
def test_a_log_with_a_fill_of_a_program_without_a_score(
    refused: Refused, run_with_a_child: Path, lost: str
) -> None:
    made = fill(0, "0.0", "mutation", "x = 2\n")
    judged = Verdict(candidate=made.id, evaluation=Evaluation(score=0.7, failure=None))
    with EventLog(run_with_a_child, session=0) as log:
        log.append(made)
        log.append(judged)
        log.commit()
    db = sqlite3.connect(run_with_a_child / "run.db")
    db.executescript(f"DELETE FROM events WHERE {lost}")
    db.close()
    words = "log is damaged: fill 0 is a variant of 0.0, which has no score; restore it"
    assert words in refused(f"resume={run_with_a_child}")


CHILD = "UPDATE events SET body = json_set(body, {}) WHERE kind = 'child'"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            "DELETE FROM events WHERE kind = 'call'",
            "child 0.0 has no call, or no parent with a score",
            id="no call",
        ),
        pytest.param(
            "DELETE FROM events WHERE kind = 'child'", "nobody made candidate 0.0", id="no child"
        ),
        pytest.param(
            CHILD.format("'$.id', 'initial', '$.refusal', 'unparsed'"),
            "program initial is there twice",
            id="its own parent",
        ),
        pytest.param(
            CHILD.format("'$.program', NULL"),
            "child 0.0 is to be evaluated and has no program",
            id="no program",
        ),
        pytest.param(
            CHILD.format("'$.program', NULL, '$.refusal', 'unparsed'"),
            "child 0.0 was refused and has a verdict",
            id="unparsed",
        ),
        pytest.param(
            CHILD.format("'$.refusal', 'duplicate'"),
            "child 0.0 was refused and has a verdict",
            id="duplicate",
        ),
    ],
)
def test_a_log_whose_events_do_not_belong_together(
    refused: Refused, run_with_a_child: Path, change: str, words: str
) -> None:
    db = sqlite3.connect(run_with_a_child / "run.db")
    db.executescript(change)
    db.close()
    assert f"log is damaged: {words}; restore it" in refused(f"resume={run_with_a_child}")


def test_a_log_with_more_tokens_than_there_can_be(refused: Refused, run_with_a_child: Path) -> None:
    db = sqlite3.connect(run_with_a_child / "run.db")
    (body,) = db.execute("SELECT body FROM events WHERE kind = 'child'").fetchone()
    many = body.replace('"cached_prompt_tokens":0', f'"cached_prompt_tokens":{10**400}')
    assert many != body
    db.execute("UPDATE events SET body = ? WHERE kind = 'child'", (many,))
    db.commit()
    db.close()
    assert "run.db is damaged" in refused(f"resume={run_with_a_child}")


def test_a_log_that_is_cut_off(refused: Refused, recorded_run: Path) -> None:
    path = recorded_run / "run.db"
    path.write_bytes(path.read_bytes()[:5000])
    assert "run.db" in refused(f"resume={recorded_run}")


def test_an_initial_program_that_fails_is_reported_before_the_model_is_loaded(
    tmp_path: Path,
) -> None:
    scratch, problem = tmp_path / "scratch", tmp_path / "problem"
    shutil.copytree(shipped()["signal"], problem)
    (problem / "initial.py").write_text(
        "def run_signal_processing(x, window_size):\n    return y\n"
    )
    done = run(f"problem.path={problem}", scratch=scratch)
    assert done.returncode == 2
    message = one_error(done.stderr)
    assert "the initial program of" in message and "name 'y' is not defined" in message
    assert list(scratch.iterdir()) == []
    assert processes_in(scratch) == []


def test_help_says_how_to_use_it(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "python -m engine.run resume=runs/NAME" in capfd.readouterr().out

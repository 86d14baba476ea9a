"""A run's best programs as a pool: what is written, and ``python -m engine.pool export``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine import config
from engine.core import INITIAL, Problem, UserError
from engine.pool import read_pool
from engine.pool.runs import export
from engine.store import EventLog

MakeRun = Callable[..., Path]


def index(folder: Path) -> Any:
    return json.loads((folder / "index.json").read_text())


def test_the_best_of_all_runs_are_written_with_their_origin(
    make_run: MakeRun, signal: Problem, tmp_path: Path
) -> None:
    third = 1 / 3
    one = make_run("one", {"0.0": 0.7, "0.1": None, "0.2": third}, settings=("seed=3",))
    two = make_run("two", {"1.0": 0.6, "1.1": 0.9}, settings=("seed=4",))
    to = tmp_path / "pools" / "signal"
    written = export([one, two], to=to, top=5)
    entries = index(to)["programs"]
    assert [(each["score"], each["run"], each["candidate"], each["seed"]) for each in entries] == [
        (0.9, "two", "1.1", 4),
        (0.7, "one", "0.0", 3),
        (0.6, "two", "1.0", 4),
        (0.5, "one", INITIAL, 3),  # both runs have it
        (third, "one", "0.2", 3),
    ]
    assert [each["file"] for each in entries] == [f"00{number}.py" for number in range(1, 6)]
    assert {each["model"] for each in entries} == {"smollm2"}
    assert {key: value for key, value in index(to).items() if key != "programs"} == {
        "problem": "signal",
        "direction": "maximise",
        "fingerprint": "f",
    }
    assert [each.candidate for each in written] == [each["candidate"] for each in entries]
    assert sorted(each.name for each in to.iterdir()) == [
        *(each["file"] for each in entries),
        "index.json",
    ]
    assert (to / "004.py").read_text() == signal.initial_program
    assert [each.name for each in to.parent.iterdir()] == ["signal"]  # nothing is left behind
    found = read_pool([to], problem=signal, most_of_run=1)
    assert len(found.programs) == 5
    assert found.unusable == {}


def test_only_the_top_are_written_and_each_program_once(make_run: MakeRun, tmp_path: Path) -> None:
    same = {"0.0": "def run(x):\n    return x\n", "0.1": "def run(x):  # shorter\n    return x"}
    run = make_run("run", {"0.0": 0.7, "0.1": 0.8, "0.2": 0.9}, programs=same)
    export([run], to=tmp_path / "pool", top=2)
    assert [each["candidate"] for each in index(tmp_path / "pool")["programs"]] == ["0.2", "0.1"]
    assert (tmp_path / "pool" / "002.py").read_text() == same["0.1"]


def test_a_run_gives_no_more_than_its_share(make_run: MakeRun, tmp_path: Path) -> None:
    one = make_run("one", {"0.0": 0.7, "0.1": 0.8, "0.2": 0.9})
    two = make_run("two", {"1.0": 0.6, "1.1": 0.55, "1.2": 0.52})
    export([one, two], to=tmp_path / "pool", top=4, each=2)
    assert [each["candidate"] for each in index(tmp_path / "pool")["programs"]] == [
        *("0.2", "0.1"),
        *("1.0", "1.1"),
    ]


def test_a_program_that_was_no_parent_in_its_run_is_none_of_a_pool(
    make_run: MakeRun, signal: Problem, tmp_path: Path
) -> None:
    fills = {f"def {signal.entry_point}(x):\n    return x + {i}\n": i == 1 for i in range(2)}
    run = make_run("run", {"0.0": 0.9, "0.1": 0.8}, fills=fills)
    export([run], to=tmp_path / "pool", top=3)
    found = index(tmp_path / "pool")["programs"]
    assert [each["candidate"] for each in found] == ["f1", "0.0", "0.1"]
    begun = read_pool([run], problem=signal, most_of_run=2).programs
    assert [source.rpartition("/")[2] for source in begun] == ["f1", "0.0"]


def test_the_summary_says_the_direction_of_a_problem_that_is_gone(
    make_run: MakeRun, tmp_path: Path
) -> None:
    run = make_run("run", {"0.0": 0.9, "0.1": 0.8})
    values = yaml.safe_load((run / "config.yaml").read_text())
    (run / "config.yaml").write_text(yaml.safe_dump({**values, "problem": "/gone/mine"}))
    with pytest.raises(UserError, match="/gone/mine: the problem's folder is gone"):
        export([run], to=tmp_path / "pool", top=1)
    (run / "summary.json").write_text(json.dumps({"direction": "minimise", "features": []}))
    export([run], to=tmp_path / "pool", top=1)
    (entry,) = index(tmp_path / "pool")["programs"]
    assert entry["candidate"] == INITIAL  # of 0.5, the least


def test_a_runs_share_is_without_what_another_run_gives(make_run: MakeRun, tmp_path: Path) -> None:
    one = make_run("one", {"0.0": 0.9, "0.1": 0.8, "0.2": 0.7})
    two = make_run("two", {"0.0": 0.9, "0.1": 0.8, "1.0": 0.6, "1.1": 0.55})  # begins as the first
    export([one, two], to=tmp_path / "pool", top=4, each=2)
    assert [each["candidate"] for each in index(tmp_path / "pool")["programs"]] == [
        *("0.0", "0.1"),
        *("1.0", "1.1"),
    ]


def test_of_programs_that_score_the_same_one_is_enough(make_run: MakeRun, tmp_path: Path) -> None:
    one = make_run("one", {"0.0": 0.9, "0.1": 0.9, "0.2": 0.7})
    two = make_run("two", {"1.0": 0.9, "1.1": 0.7, "1.2": 0.6})
    export([one, two], to=tmp_path / "pool", top=9, each=2, distinct=True)
    found = [(each["score"], each["candidate"]) for each in index(tmp_path / "pool")["programs"]]
    assert found == [(0.9, "0.0"), (0.7, "0.2"), (0.6, "1.2"), (0.5, INITIAL)]
    export([one, two], to=tmp_path / "more", top=9, distinct=True)
    assert [each["score"] for each in index(tmp_path / "more")["programs"]] == [0.9, 0.7, 0.6, 0.5]


def test_runs_that_do_not_compare_are_refused(make_run: MakeRun, tmp_path: Path) -> None:
    one = make_run("one", {"0.0": 0.7})
    changed = make_run("changed", {"0.0": 0.7}, fingerprint="g")
    other = make_run("other", {"0.0": 0.7})
    settings = config.resolve(["problem=circle_packing"])
    config.save(settings, other / "config.yaml")
    to = tmp_path / "pool"
    with pytest.raises(UserError, match=r"scored by different versions of the problem"):
        export([one, changed], to=to, top=1)
    with pytest.raises(UserError, match=r"is a run of problem circle_packing, not of signal"):
        export([one, other], to=to, top=1)
    with pytest.raises(UserError, match=r"is not a run: it has no config\.yaml"):
        export([tmp_path], to=to, top=1)
    with EventLog(one), pytest.raises(UserError, match="another process works on"):
        export([one], to=to, top=1)
    assert not to.exists()


def test_a_folder_that_is_there_is_left_alone(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("run", {"0.0": 0.7})
    to = tmp_path / "pool"
    to.mkdir()
    (to / "mine.py").write_text("x = 1\n")
    with pytest.raises(UserError, match="exists; give another to=FOLDER"):
        export([run], to=to, top=1)
    assert [each.name for each in to.iterdir()] == ["mine.py"]
    with pytest.raises(UserError, match="can't be written"):
        export([run], to=to / "mine.py" / "pool", top=1)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "engine.pool", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=Path(__file__).parents[2],
    )


def test_the_command_says_what_it_wrote(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("run", {"0.0": 0.1 + 0.2, "0.1": 0.9})
    to = tmp_path / "pool"
    done = command("export", str(run), f"to={to}", "top=2", "each=5")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"0.9  {to}/001.py  run/0.1",
        f"0.5  {to}/002.py  run/{INITIAL}",
    ]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "expected: export RUN... to=FOLDER top=N each=N"),
        (["import", "x"], "expected: export RUN... to=FOLDER top=N each=N"),
        (["export", "to=x"], "no run is given"),
        (["export", "runs/a"], "to= is missing"),
        (["export", "runs/a", "to="], "to= is missing"),
        (["export", "runs/a", "to=x", "to=y"], "to= is given twice"),
        (["export", "runs/a", "to=x", "top=0"], "top is '0'"),
        (["export", "runs/a", "to=x", "top=²"], "top is '²'"),
        (["export", "runs/a", "to=x", "top=" + "9" * 5000], "top is '99999999999999999999'"),
        (["export", "runs/a", "to=x", "each=-1"], "each is '-1'"),
        (["export", "no/such/run", "to=x"], "no/such/run is not a run"),
    ],
)
def test_bad_arguments_are_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from engine.pool.__main__ import main

    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert words in err
    assert err.count("\n") == 1


def test_help_says_how_it_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    from engine.pool.__main__ import main

    assert main(["--help"]) == 0
    assert "export RUN... to=FOLDER top=N each=N" in capsys.readouterr().out

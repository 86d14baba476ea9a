"""A run's beginning from a pool: who starts where, and what is left out; and a whole such run."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from command import assert_complete, run

from engine import config
from engine.core import Failure, Feature, Problem
from engine.evaluation import EvaluatorPool
from engine.pool import read_pool, seeds
from engine.pool.runs import INDEX
from engine.problem import POOL, load_problem, shipped
from engine.store import Event, Seed, Verdict

DOUBLE = Path(__file__).parents[1] / "evaluation" / "problems" / "double"
GOOD = """\
def double(values, offset=0.0):
    return {"doubled": 2 * values + offset, "count": len(values)}
"""
CANDIDATES = 12


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem(DOUBLE)


def begun(
    problem: Problem,
    *sources: Path,
    islands: int = 1,
    longest: int = 10**6,
    features: Sequence[Feature] | None = None,
) -> list[Event]:
    listed = ",".join(map(config.quoted, map(str, sources)))
    settings = config.resolve(
        [
            *(f"pool.sources=[{listed}]", "pool.most_of_run=9", "pool.mixing=0", "pool.elites=0"),
            *(f"islands.count={islands}", "seed=1"),
        ]
    )
    with EvaluatorPool(problem=problem, workers=1) as evaluators:
        return seeds(
            settings,
            read_pool(settings.pool.sources, problem=problem, most_of_run=9),
            problem=problem,
            evaluators=evaluators,
            fits=lambda program: len(program) <= longest,
            features=features,
        )


def test_every_program_that_was_evaluated_is_recorded_with_its_verdict(
    problem: Problem, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    programs = {
        "a": GOOD.replace("2 *", "1.5 * values + 0.5 *"),
        "b": "def double(values, offset=0.0):\n    raise ValueError('no')\n",
        "c": "def double(values, offset=0.0):\n    return missing\n",
        "d": problem.initial_program + "# the same\n",
        "e": "def double(:\n",
        "f": "def double(values, offset=0.0):\n    while True: pass\n",
        "g": GOOD + "# long" * 1000,
        "h": "import os\nos.kill(os.getppid(), 9)\n" + GOOD,
        "i": GOOD.replace("return", "open('trace', 'w')\n    return"),
    }
    for name, text in programs.items():
        (tmp_path / f"{name}.py").write_text(text)
    found = begun(problem, tmp_path, longest=4000)
    label = tmp_path.name
    made = [each for each in found if isinstance(each, Seed)]
    assert [(each.candidate, each.source) for each in made] == [
        ("pool.0", f"{label}/a.py"),
        ("pool.1", f"{label}/b.py"),
        ("pool.2", f"{label}/f.py"),
        ("pool.3", f"{label}/h.py"),
        ("pool.4", f"{label}/i.py"),
    ]
    assert [each.program for each in made] == [programs[name] for name in "abfhi"]
    assert [each.islands for each in made] == [(0,), (), (), (), ()]
    verdicts = [each for each in found if isinstance(each, Verdict)]
    assert all(each.evaluation.failure is not None for each in verdicts[3:])
    assert [(each.candidate, each.evaluation.failure) for each in verdicts[:3]] == [
        ("pool.0", None),
        ("pool.1", Failure.ERROR),
        ("pool.2", Failure.TIMEOUT),
    ]
    assert [type(each) for each in found] == 5 * [Seed, Verdict]
    for name, reason in (
        ("b", "ValueError"),
        ("c", "nothing defines: missing"),
        ("d", "the same as the initial program"),
        ("e", "not valid Python"),
        ("g", "too long for a prompt"),
    ):
        (line,) = [each for each in caplog.messages if f"{label}/{name}.py is left out" in each]
        assert reason in line


def test_each_island_begins_with_a_cluster_of_its_own(problem: Problem, tmp_path: Path) -> None:
    loop = """\
import numpy as np
def double(values, offset=0.0):
    result = np.zeros(len(values))
    for index, value in enumerate(values):
        result[index] = value * FACTOR + offset
    return {"doubled": result, "count": len(values)}
"""
    for number in range(3):
        (tmp_path / f"a{number}.py").write_text(GOOD.replace("2 *", f"{number + 3} *"))
        (tmp_path / f"b{number}.py").write_text(loop.replace("FACTOR", str(number + 3)))
    made = [each for each in begun(problem, tmp_path, islands=2) if isinstance(each, Seed)]
    homes: dict[str, set[int]] = {"a": set(), "b": set()}
    for each in made:
        homes[each.source.split("/")[1][0]] |= set(each.islands)
    assert sorted(map(sorted, homes.values())) == [[0], [1]]
    assert all(len(each.islands) == 1 for each in made)


def test_a_program_with_a_score_is_recorded_with_its_cell(problem: Problem, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(GOOD.replace("2 *", "3 *"))
    (tmp_path / "b.py").write_text("def double(values, offset=0.0):\n    raise ValueError('no')\n")
    plain = [each for each in begun(problem, tmp_path) if isinstance(each, Verdict)]
    assert [each.cell for each in plain] == [None, None]
    calls = Feature(name="calls", low=0, high=9, bins=9)
    found = begun(problem, tmp_path, features=(calls,))
    cells = [each.cell for each in found if isinstance(each, Verdict)]
    assert cells == [(1,), None]  # it calls len


def test_no_source_is_no_pool(problem: Problem) -> None:
    assert begun(problem) == []


def test_a_run_begins_with_a_pool_and_goes_on_from_its_best(tmp_path: Path) -> None:
    """The pool is made of the one that comes with the problem, with a hostile file beside it."""
    pool, own = tmp_path / "pool", shipped()["signal"] / POOL
    pool.mkdir()
    listed = json.loads((own / INDEX).read_text())["programs"][:3]
    for each in listed:
        shutil.copy(own / each["file"], pool)
    (pool / "kill.py").write_text(
        "import os\ndef run_signal_processing(signal, window):\n    os.kill(os.getppid(), 9)\n"
    )
    done = run(
        *("problem=signal", "model=mutation", f"budget.candidates={CANDIDATES}", "seed=4"),
        *("budget.seconds=null", "evaluation.workers=1", "islands.count=2"),
        *(f"pool.sources={pool}", f"runs={tmp_path}", "name=run"),
        scratch=tmp_path / "scratch",
    )
    assert done.returncode == 0, done.stderr
    assert "pool/kill.py is left out" in done.stderr
    assert_complete(tmp_path / "run", candidates=CANDIDATES)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    best = max(each["score"] for each in listed)
    assert summary["best_score"] >= best * 0.98 > summary["initial_score"]
    assert summary["candidates"] == CANDIDATES  # the pool's programs do not count
    with sqlite3.connect(tmp_path / "run" / "run.db") as db:
        kinds = [kind for (kind,) in db.execute("SELECT kind FROM events ORDER BY seq")]
        bodies = db.execute("SELECT body FROM events WHERE kind = 'call'").fetchall()
        verdicts = db.execute("SELECT body FROM events WHERE kind = 'verdict'").fetchall()
        sown = db.execute("SELECT body FROM events WHERE kind = 'seed'").fetchall()
    assert kinds[:4] == ["session", "verdict", "seed", "verdict"]
    assert kinds.count("seed") == len(listed) + 1
    (hostile,) = [
        each for (body,) in sown if (each := json.loads(body))["source"] == "pool/kill.py"
    ]
    (evaluation,) = [
        each["evaluation"]
        for (body,) in verdicts
        if (each := json.loads(body))["candidate"] == f"pool.{hostile['number']}"
    ]
    assert evaluation["failure"] is not None and evaluation["score"] is None
    assert hostile["islands"] == []
    assert any(json.loads(body)["parent"].startswith("pool.") for (body,) in bodies)

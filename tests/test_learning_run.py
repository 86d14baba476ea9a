"""A run whose model learns, killed and resumed, and what is asked of it afterwards."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command import (
    SECONDS,
    assert_complete,
    processes_in,
    read_events,
    read_summary,
    run,
    start,
    wait_until,
)

from engine.report.__main__ import main as report

ARGUMENTS = [
    *("learning=mean_baseline", "learning.groups=2", "search.k=4", "seed=3", "fill=none"),
    # Small steps on what is recent: one is over every few seconds, however slow the machine.
    *("pipeline.children=8", "learning.max_lag=8"),
    *("budget.candidates=5000", "budget.seconds=null"),
]
BUDGETS = 4
"""The budget, in multiples of the candidates that were evaluated when the first step stood.

How many those are depends on the machine, and on what else it does: from 80 to 400. The next step
takes as many again, since the trainer has to be loaded anew.
"""

pytestmark = pytest.mark.slow


def versions_in(folder: Path) -> int:
    """Return how many steps of a run stand."""
    try:
        with closing(sqlite3.connect(f"{(folder / 'run.db').as_uri()}?mode=ro", uri=True)) as db:
            bodies = db.execute("SELECT body FROM events WHERE kind = 'update'").fetchall()
    except sqlite3.Error:
        return 0
    found = [json.loads(body) for (body,) in bodies]
    return sum(each["skipped"] is None and each["rolled_back"] is None for each in found)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A run that was killed after an update and then went to its end; its events before that."""
    folder = tmp_path_factory.mktemp("learning")
    scratch, made = folder / "scratch", folder / "learns"
    process = start(
        *(*ARGUMENTS, f"runs={folder}", "name=learns"),
        scratch=scratch,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: versions_in(made) >= 1 or process.poll() is not None)
        assert process.poll() is None, "the run ended before it was killed"
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not processes_in(scratch))
    before = read_events(made)
    file = made / "config.yaml"
    most = f"candidates: {BUDGETS * len(before['verdict'])}"
    file.write_text(file.read_text().replace("candidates: 5000", most))
    assert most in file.read_text()
    done = run(f"resume={made}", scratch=scratch, seconds=2 * SECONDS)
    assert done.returncode == 0, done.stderr
    assert "Learning (mean_baseline, last_block): " in done.stdout
    assert "trainer's process died" not in done.stderr
    assert not processes_in(scratch)
    yield made, before


def test_it_learns_on_where_it_was(killed: tuple[Path, dict[str, Any]]) -> None:
    folder, before = killed
    assert_complete(folder, candidates=BUDGETS * len(before["verdict"]))
    events = read_events(folder)
    for kind in ("call", "child", "verdict", "update"):
        assert events[kind][: len(before[kind])] == before[kind]
    updates = events["update"]
    assert [each["number"] for each in updates] == [*range(1, len(updates) + 1)]
    assert len(updates) > len(before["update"])
    in_force = 0
    for each in updates:
        stands = each["skipped"] is None and each["rolled_back"] is None
        assert each["version"] == (each["number"] if stands else each["version"]) <= each["number"]
        assert stands or each["rolled_back"] or each["version"] == in_force
        in_force = each["version"]
    learned = [iteration for each in updates for iteration in each["groups"]]
    assert len(learned) == len(set(learned))
    summary = read_summary(folder)["learning"]
    assert summary["updates"] == versions_in(folder) >= 2
    assert summary["version"] == in_force
    assert summary["seconds"] > 0 and summary["swap_ms"] > 0 and summary["entropy"] > 0
    assert summary["mismatch"] < 0.2  # sampler and trainer agree: prompts, masks and temperatures


def test_each_call_says_what_its_children_were_sampled_from(
    killed: tuple[Path, dict[str, Any]],
) -> None:
    folder, before = killed
    events = read_events(folder)
    adapters = {call["iteration"]: call["adapter"] for call in events["call"]}
    assert max(adapters.values()) > max(call["adapter"] for call in before["call"])
    for call in before["call"]:  # those that were cut short too
        assert adapters[call["iteration"]] == call["adapter"]
    given = {version for each in events["update"] for version in (0, each["version"])}
    assert set(adapters.values()) <= given
    for call in events["call"]:
        assert len(call["sampled_from"]["prompt_ids"]) == call["prompt_tokens"]
    for child in events["child"]:
        assert len(child["logprobs"]) == len(child["completion_ids"])
        assert all(value <= 0 for value in child["logprobs"])


def test_the_last_adapter_is_there_with_all_that_is_needed_to_go_on(
    killed: tuple[Path, dict[str, Any]],
) -> None:
    folder, _ = killed
    last = folder / "adapters" / f"{read_summary(folder)['learning']['version']:06}"
    names = {path.name for path in last.iterdir()}
    assert names >= {"adapter_config.json", "adapter_model.safetensors", "trainer.pt"}


def test_its_analysis(killed: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, _ = killed
    assert report([str(folder), "analysis=learning", f"json={tmp_path / 'a.json'}"]) == 0
    figures = json.loads((tmp_path / "a.json").read_text())["figures"]
    events = read_events(folder)
    assert [row["step"] for row in figures["updates"]] == [u["number"] for u in events["update"]]
    judged = [each for each in events["child"] if each["refusal"] not in ("budget", "failed")]
    assert sum(row["children"] for row in figures["children"]) == len(judged)


def test_its_probe(killed: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, _ = killed
    done = subprocess.run(
        [sys.executable, "-m", "engine.probe", str(folder), "prompts=2", "children=8"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    written = json.loads((folder / "probe.json").read_text())
    assert found == {name: value for name, value in written.items() if name != "prompts"}
    assert found["children"] == {
        **{"base": 16, "adapter": 16, "ratio": 1.0},
        "interval_95": [1.0, 1.0],
    }
    for row in written["prompts"]:
        for each in (row["base"], row["adapter"]):
            assert each["improving"] <= each["unique_valid"] <= each["valid"] <= 8
    again = run(f"resume={folder}", scratch=tmp_path / "scratch")
    assert again.returncode == 0, again.stderr
    assert read_summary(folder)["learning"]["probe"] == found

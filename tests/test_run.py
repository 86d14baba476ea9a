"""The main job from end to end: the real model, the real engine, the command as a user types it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from command import (
    SECONDS,
    assert_complete,
    count_events,
    processes_in,
    read_events,
    read_summary,
    run,
    start,
    wait_until,
)

from engine import config
from engine.inference import find_weights
from engine.inference.number_format import FORMATS
from engine.problem import shipped

CANDIDATES = 32
REQUIRED = {
    *("problem", "model", "seed", "children", "candidates", "valid", "best_score"),
    *("initial_score", "prompt_tokens", "cached_prompt_tokens", "hit_rate", "generated_tokens"),
    *("llm_seconds", "evaluation_seconds", "wall_seconds", "clock", "computed_prompt_tokens"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """A run that spent its budget."""

    folder: Path
    scratch: Path
    process: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    tmp = tmp_path_factory.mktemp("finished")
    process = run(
        *("problem=signal", "model=smollm2", "search.k=4", f"budget.candidates={CANDIDATES}"),
        *("pipeline.speculate=true", "seed=3", f"runs={tmp}", "name=whole"),
        scratch=tmp / "scratch",
    )
    return Finished(folder=tmp / "whole", scratch=tmp / "scratch", process=process)


def test_a_run_spends_its_budget_and_exits_with_0(finished: Finished) -> None:
    assert finished.process.returncode == 0, finished.process.stderr
    assert_complete(finished.folder, candidates=CANDIDATES)
    files = {path.name for path in finished.folder.iterdir()}
    assert files >= {"best.py", "summary.json", "config.yaml", "run.db"}


def test_the_summary_has_every_figure(finished: Finished) -> None:
    summary = read_summary(finished.folder)
    assert summary.keys() >= REQUIRED
    assert (summary["problem"], summary["model"], summary["seed"]) == ("signal", "smollm2", 3)
    assert summary["initial_score"] == pytest.approx(0.4990, abs=5e-5)
    assert summary["best_score"] >= summary["initial_score"]
    assert 0.5 < summary["hit_rate"] < 1
    assert 0 < summary["llm_seconds"] < summary["wall_seconds"]
    assert summary["evaluation_seconds"] > 0
    assert summary["sessions"] == 1


def test_every_call_spreads_its_temperatures(finished: Finished) -> None:
    search = yaml.safe_load((finished.folder / "config.yaml").read_text())["search"]
    ends = [search["temperature_min"], search["temperature_max"]]
    calls = read_events(finished.folder)["call"]
    assert len({call["iteration"] for call in calls}) == len(calls) > 4
    for call in calls:
        assert [call["temperatures"][0], call["temperatures"][-1]] == pytest.approx(ends)
        assert call["temperatures"] == sorted(call["temperatures"])
        assert len(set(call["seeds"])) == call["k"] == 4


def test_the_best_program_scores_what_the_summary_says(finished: Finished) -> None:
    program = finished.folder / "best.py"
    done = subprocess.run(
        [sys.executable, "-m", "engine.evaluate", "problem=signal", f"program={program}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"score      {read_summary(finished.folder)['best_score']!r}\n" in done.stdout


def test_every_island_is_asked_and_guesses_are_counted(finished: Finished) -> None:
    calls = read_events(finished.folder)["call"]
    assert {call["island"] for call in calls} == {0, 1, 2, 3}
    speculation = read_summary(finished.folder)["speculation"]
    assert speculation["guesses"] >= speculation["hits"] == sum(call["guessed"] for call in calls)
    said = f"{speculation['hits']} of {speculation['guesses']} guesses came true"
    assert speculation["guesses"] > 0 and said in finished.process.stdout


def test_the_settings_are_kept_as_resolved(finished: Finished) -> None:
    settings = yaml.safe_load((finished.folder / "config.yaml").read_text())
    assert settings["search"]["k"] == 4
    assert settings["budget"]["candidates"] == CANDIDATES
    assert settings["evaluation"]["workers"] >= 1  # no null is left
    assert settings["model"]["dtype"] in FORMATS
    assert f"the model computes in {settings['model']['dtype']}" in finished.process.stderr
    assert Path(settings["problem"]).is_dir()


def test_output_that_is_no_terminal_is_plain_lines(finished: Finished) -> None:
    out = finished.process.stdout
    assert "\x1b" not in out and "\r" not in out
    assert f"candidates {CANDIDATES}/{CANDIDATES}" in out
    for words in ("Best program", "Best score", "hit rate", str(finished.folder)):
        assert words in out


def test_nothing_but_its_folder_is_left_of_a_run(finished: Finished) -> None:
    assert processes_in(finished.scratch) == []
    assert not list(finished.scratch.glob("brood-*"))
    assert [path.name for path in finished.folder.parent.glob("*whole*")] == ["whole"]


def test_standard_error_is_free_of_noise(finished: Finished) -> None:
    lines = finished.process.stderr.splitlines()
    assert "loading smollm2" in lines
    noise = re.compile(r"Warning: `|FutureWarning|Triton not|it/s\]|\| 0/|Traceback|ERROR")
    assert [line for line in lines if noise.search(line)] == []


class Terminal:
    """A pseudo-terminal: what a process writes to it is collected as it comes."""

    def __init__(self) -> None:
        self._ours, self.theirs = pty.openpty()
        self._seen = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def close(self) -> str:
        """Close it, once the process has ended, and return all that was written to it."""
        os.close(self.theirs)
        self._reader.join(timeout=10)
        os.close(self._ours)
        return self._seen.decode(errors="replace")

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._ours, 1 << 14)
            except OSError:  # all other ends are closed
                return
            self._seen += data


@pytest.mark.parametrize("model", ["mutation", pytest.param("smollm2", marks=pytest.mark.slow)])
def test_ctrl_c_at_a_terminal_finishes_cleanly(tmp_path: Path, model: str) -> None:
    folder, scratch = tmp_path / "stopped", tmp_path / "scratch"
    terminal = Terminal()
    process = start(
        *(f"model={model}", "budget.candidates=null", "budget.seconds=600"),
        *("seed=4", f"runs={tmp_path}", "name=stopped"),
        scratch=scratch,
        stdin=terminal.theirs,
        stdout=terminal.theirs,
        stderr=terminal.theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    try:
        wait_until(lambda: count_events(folder) >= 12 or process.poll() is not None)
        terminal.type(b"\x03")
        assert process.wait(timeout=SECONDS) == 130
    finally:
        process.kill()
    shown = terminal.close()
    assert "\x1b[" in shown and "╭" in shown and "tokens/s" in shown  # the live panel
    assert "Traceback" not in shown
    assert f"resume={folder}" in shown.replace("\r\n", "")
    assert processes_in(scratch) == []
    assert not list(scratch.glob("brood-*"))
    assert read_summary(folder)["ended_by"] is None


def test_a_run_that_was_stopped_is_resumed_to_its_end(tmp_path: Path) -> None:
    folder, scratch, candidates = tmp_path / "stopped", tmp_path / "scratch", 600
    process = start(
        *("model=mutation", f"budget.candidates={candidates}", "budget.seconds=null"),
        *("seed=4", f"runs={tmp_path}", "name=stopped"),
        scratch=scratch,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        wait_until(lambda: count_events(folder) >= 12 or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert f"resume={folder}" in said
    stopped = read_summary(folder)
    assert stopped["candidates"] < candidates
    resumed = run(f"resume={folder}", scratch=scratch)
    assert resumed.returncode == 0, resumed.stderr
    assert_complete(folder, candidates=candidates)
    assert read_summary(folder)["sessions"] == 2
    assert read_summary(folder)["wall_seconds"] > stopped["wall_seconds"]


@pytest.mark.slow
def test_a_problem_from_outside_with_a_model_by_path_ends_in_time(tmp_path: Path) -> None:
    problem = tmp_path / "elsewhere" / "mine"
    shutil.copytree(shipped()["signal"], problem)
    weights = find_weights(config.resolve(["model=smollm2"]).model)
    done = run(
        *(f"problem.path={problem}", f"model.path={weights}", "name=mine", "search.k=3"),
        "model=smollm2",
        *("search.operators.infill=0", "search.operators.rewrite=1", "model.max_tokens=300"),
        *("budget.candidates=1000", "budget.seconds=8", "evaluation.workers=1"),
        scratch=tmp_path / "scratch",
    )
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "scratch" / "runs" / "mine"  # runs/ is made where the command is typed
    summary = read_summary(folder)
    assert (summary["problem"], summary["model"]) == ("mine", weights.name)
    assert {call["operator"] for call in read_events(folder)["call"]} == {"rewrite"}
    assert summary["children"] > 0
    assert summary["ended_by"] == "seconds"
    judged = summary["candidates"] + summary["unevaluated"]  # time may be up before a verdict is in
    assert summary["children"] == judged + sum(summary["refused"].values())


SCREEN = """
from engine.core import Stage

def screens():
    return [Stage(name="quick", cases=tuple(cases()), score=score)]
"""


def test_a_problem_with_a_cheap_stage_screens_its_candidates(tmp_path: Path) -> None:
    problem = tmp_path / "screened"
    shutil.copytree(shipped()["signal"], problem)
    with (problem / "evaluator.py").open("a") as file:
        file.write(SCREEN)
    done = run(
        *(f"problem.path={problem}", "search.k=8", "budget.candidates=120", "seed=3"),
        *("model=mutation", "evaluation.cascade.window=16", f"runs={tmp_path}", "name=run"),
        "fill=none",  # a fill is evaluated in full
        scratch=tmp_path / "scratch",
    )
    assert done.returncode == 0, done.stderr
    assert_complete(tmp_path / "run", candidates=120)
    events, summary = read_events(tmp_path / "run"), read_summary(tmp_path / "run")
    evaluations = [each["evaluation"] for each in events["verdict"]]
    for each in evaluations:
        if each["score"] is not None:
            assert each["metrics"]["quick.score"] == each["score"]
    assert (summary["screens_off"], events["switched_off"]) == ({}, [])
    screened = [each for each in evaluations if each["failure"] == "screened"]
    assert summary["screened"] == len(screened) > 0
    for each in screened:
        assert re.match(r"stage quick: score \S+ does not reach \S+, as", each["message"])
    assert f"{len(screened)} screened out by cheap stages" in done.stdout


def test_a_context_without_room_for_the_initial_program_is_refused_at_the_start(
    tmp_path: Path,
) -> None:
    scratch = tmp_path / "scratch"
    done = run(
        *("model=mutation", "model.max_model_len=400", "model.max_tokens=100"),
        f"runs={tmp_path}/runs",
        scratch=scratch,
    )
    assert done.returncode == 2
    message = done.stderr.strip().splitlines()[-1]
    assert re.match(r"error: the initial program of .*signal has \d+ tokens, and a prompt", message)
    assert "operator mutation has room for" in message
    assert "raise model.max_model_len" in message
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_a_budget_of_0_ends_at_once(tmp_path: Path) -> None:
    done = run("budget.candidates=0", f"runs={tmp_path}", "name=none", scratch=tmp_path / "scratch")
    assert done.returncode == 0, done.stderr
    summary = read_summary(tmp_path / "none")
    assert (summary["children"], summary["candidates"], summary["hit_rate"]) == (0, 0, 0)
    assert summary["best_score"] == summary["initial_score"]


@pytest.mark.slow
def test_a_sweep_runs_every_combination(tmp_path: Path) -> None:
    done = run(
        *("--multirun", "search.k=1,2", "seed=0", "budget.candidates=2"),
        *(f"runs={tmp_path}", "name=sweep"),
        scratch=tmp_path / "scratch",
    )
    assert done.returncode == 0, done.stderr
    runs = {path.name: path for path in (tmp_path / "sweep").iterdir() if path.is_dir()}
    assert set(runs) == {"search.k=1", "search.k=2"}
    for name, folder in runs.items():
        assert_complete(folder, candidates=2)
        assert f"search.k={read_summary(folder)['mean_k']:g}" == name

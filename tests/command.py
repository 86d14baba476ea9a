"""``python -m engine.run`` as a user types it, and what a finished run has to look like.

Each command gets a folder of its own for temporary files, so a test can tell what a run left behind
and which processes belong to it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from engine import syntax
from engine.core import INITIAL, Event
from engine.syntax.reading import program_key

SECONDS = 1800.0
"""How long one command may take on a machine that is busy with something else."""


def start(
    *arguments: str, scratch: Path, cwd: Path | None = None, **options: Any
) -> subprocess.Popen[str]:
    """Start ``python -m engine.run``; its temporary files go to ``scratch``."""
    scratch.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "engine.run", *arguments],
        stdin=options.pop("stdin", subprocess.DEVNULL),
        text=True,
        cwd=cwd or scratch,
        env={**os.environ, "TMPDIR": str(scratch)},
        **options,
    )


def run(
    *arguments: str, scratch: Path, cwd: Path | None = None, seconds: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m engine.run`` to its end."""
    process = start(
        *arguments, scratch=scratch, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def wait_until(holds: Callable[[], bool], *, seconds: float = SECONDS, pause: float = 0.02) -> None:
    """Wait until ``holds``.

    Raises:
        TimeoutError: it did not come true.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing happened for {seconds} s")
        time.sleep(pause)


def processes_in(scratch: Path) -> list[int]:
    """Return the living processes that work in ``scratch`` or have it in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        try:
            alive = (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            belongs = str(scratch).encode() in (folder / "environ").read_bytes()
            inside = (folder / "cwd").readlink().is_relative_to(scratch)
        except OSError:
            continue  # it ended, or belongs to somebody else
        if alive and (belongs or inside):
            found.append(int(folder.name))
    return found


def count_events(folder: Path) -> int:
    """Return the number of events in a run's log; 0 before there is one, which appears whole."""
    log = folder / "run.db"
    if not log.exists():
        return 0
    with sqlite3.connect(f"{log.as_uri()}?mode=ro", uri=True) as db:
        return int(db.execute("SELECT count(*) FROM events").fetchone()[0])


def read_events(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the events of a run by kind, in the order they were written."""
    events: dict[str, list[dict[str, Any]]] = {kind.KIND: [] for kind in get_args(Event)}
    with sqlite3.connect(folder / "run.db") as db:
        for kind, body in db.execute("SELECT kind, body FROM events ORDER BY seq"):
            events[kind].append(json.loads(body))
    return events


def read_summary(folder: Path) -> dict[str, Any]:
    """Return a run's summary."""
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return summary


def assert_complete(folder: Path, *, candidates: int) -> None:
    """Assert that a run reached its budget exactly, and that its summary is what it recorded.

    What filled idle evaluators is counted apart, and may have no verdict when the run ends.
    """
    events, summary = read_events(folder), read_summary(folder)
    children = {child["id"]: child for child in events["child"]}
    every = {verdict["candidate"]: verdict for verdict in events["verdict"]}
    assert len(events["verdict"]) == len(every)
    fills = {f"f{fill['number']}": fill for fill in events["fill"]}
    verdicts = {name: each for name, each in every.items() if name not in fills}
    evaluated = [child for child in children.values() if child["refusal"] is None]

    first = {INITIAL, *(f"pool.{seed['number']}" for seed in events["seed"])}
    assert len(verdicts) == candidates + len(first)
    assert set(verdicts) == first | {child["id"] for child in evaluated}
    assert len(events["child"]) == len(children) == sum(call["k"] for call in events["call"])
    # A fill whose place a child took is withdrawn, and has no verdict.
    judged = [*evaluated, *(fill for name, fill in fills.items() if name in every)]
    keys = Counter(program_key(_tree(each["program"]["text"])) for each in judged)
    assert set(keys.values()) <= {1}, "a program was evaluated twice"
    for each in (*children.values(), *fills.values()):
        assert every[each["parent"]]["evaluation"]["score"] is not None
    filled = [each for name, each in every.items() if name in fills]
    assert sum(each["judged"] for each in summary["fills"].values()) == len(filled)

    scores = [
        verdict["evaluation"]["score"]
        for verdict in verdicts.values()
        if verdict["evaluation"]["score"] is not None
    ]
    assert summary["children"] == len(children)
    assert summary["candidates"] == candidates
    began = [
        verdicts[each]["evaluation"]["score"]
        for each in first
        if verdicts[each]["evaluation"]["score"] is not None
    ]
    assert summary["valid"] == len(scores) - len(began)
    found = [each["evaluation"]["score"] for each in filled]
    assert summary["best_score"] == max([*scores, *(each for each in found if each is not None)])
    assert summary["initial_score"] == verdicts[INITIAL]["evaluation"]["score"]
    assert summary["unevaluated"] == 0
    assert summary["refused"] == Counter(
        child["refusal"] for child in children.values() if child["refusal"] is not None
    )
    for name in ("prompt_tokens", "cached_prompt_tokens"):
        assert summary[name] == sum(child[name] for child in children.values())
    generated = sum(len(child["completion_ids"]) for child in children.values())
    assert summary["generated_tokens"] == generated
    missed: Counter[str] = Counter()
    for child in children.values():
        computed = child["prompt_tokens"] - child["cached_prompt_tokens"]
        assert sum(child["missed"].values()) == computed
        missed.update(child["missed"])
    assert summary["computed_prompt_tokens"] == missed
    assert summary["hit_rate"] == summary["cached_prompt_tokens"] / summary["prompt_tokens"]
    assert summary["sessions"] == len(events["session"])
    given_up, hits = events["given_up"], sum(call["guessed"] for call in events["call"])
    assert summary["speculation"]["hits"] == hits
    assert summary["speculation"]["guesses"] == hits + len(given_up)
    wasted = sum(each["generated_tokens"] for each in given_up)
    assert summary["speculation"]["wasted_tokens"] == wasted


def _tree(program: str) -> Any:
    tree = syntax.parse(program)
    assert tree is not None
    return tree

"""Question: what does an LMCache server give a run that is restarted, and what does it cost?

Method: for each round, and for each cache in turn, ``python -m engine.run`` with an empty folder
for the disk tier. The run is killed with ``kill -9`` once it has recorded half of its candidates,
and then resumed to its end; both caches see the same seed, and every engine starts empty.
For the run (``cold``) and for its resumption (``restart``), median and range over the rounds of:

- ``start_seconds``: wall seconds from the command to the first child that is recorded;
- ``first_hit_rate``: share of cached prompt tokens in the first call, the engine's prefix cache and
  the server's together;
- ``hit_rate``: the same for all calls;
- ``llm_ms_per_child``: engine time per child;
- ``llm_ms_per_token``: engine time per generated token.

Usage: python -m bench.restart [rounds=3] [candidates=120] [seed=0] [problem=signal] [model=smollm2]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.figures import spread
from bench.options import model_arguments, read_options, run_as_command, whole_number
from engine.core import UserError

CACHES = ("none", "lmcache")
_DEFAULTS = {
    "rounds": "3",
    "candidates": "120",
    "seed": "0",
    "problem": "signal",
    "model": "smollm2",
}
_LOOK_SECONDS = 0.02
_MOST_SECONDS = 900.0


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, _DEFAULTS, usage=__doc__ or "")
    rounds, candidates = whole_number(options, "rounds"), whole_number(options, "candidates")
    first = whole_number(options, "seed", least=0)
    every: dict[str, list[dict[str, dict[str, float]]]] = {cache: [] for cache in CACHES}
    for turn in range(rounds):
        for cache in CACHES if turn % 2 == 0 else reversed(CACHES):
            seed = first + turn
            with tempfile.TemporaryDirectory() as scratch:
                seen = restart(
                    Path(scratch),
                    candidates=candidates,
                    arguments=[
                        f"problem={options['problem']}",
                        *model_arguments(options),
                        *(f"cache={cache}", f"cache.folder={scratch}/kv", f"seed={seed}"),
                    ],
                )
            every[cache].append(seen)
            sys.stdout.write(f"round {turn}, {cache}: {seen}\n")
            sys.stdout.flush()
    figures = {cache: _over_rounds(seen) for cache, seen in every.items()}
    sys.stdout.write(json.dumps({**options, "caches": figures}) + "\n")


def restart(
    scratch: Path, *, arguments: Sequence[str], candidates: int
) -> dict[str, dict[str, float]]:
    """Run, kill in the middle, resume to the end; return the figures of both sessions."""
    folder = scratch / "runs" / "run"
    first = [*arguments, f"budget.candidates={candidates}", "budget.seconds=null"]
    first += [f"runs={scratch / 'runs'}", "name=run"]
    until = {0: lambda: _count(folder, "verdict", 0) >= candidates // 2, 1: None}
    figures = {}
    for session, command in enumerate((first, [f"resume={folder}"])):
        began = time.monotonic()
        with (scratch / "output").open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "engine.run", *command], stdout=output, stderr=output
            )
        try:
            _wait(process, lambda number=session: _count(folder, "child", number) > 0, scratch)
            started = time.monotonic() - began
            _wait(process, until[session], scratch)
        finally:
            process.kill()
            process.wait()
        figures["restart" if session else "cold"] = {
            "start_seconds": started,
            **_figures(_children(folder, session)),
        }
    return figures


def _figures(children: Sequence[dict[str, Any]]) -> dict[str, float]:
    first = [child for child in children if child["iteration"] == children[0]["iteration"]]
    seconds = sum(child["llm_seconds"] for child in children)
    return {
        "first_hit_rate": _hit_rate(first),
        "hit_rate": _hit_rate(children),
        "llm_ms_per_child": 1e3 * seconds / len(children),
        "llm_ms_per_token": 1e3
        * seconds
        / max(1, sum(len(child["completion_ids"]) for child in children)),
    }


def _hit_rate(children: Sequence[dict[str, Any]]) -> float:
    cached = sum(child["cached_prompt_tokens"] for child in children)
    return float(cached / max(1, sum(child["prompt_tokens"] for child in children)))


def _over_rounds(seen: Sequence[dict[str, dict[str, float]]]) -> dict[str, Any]:
    return {
        session: {
            figure: spread([each[session][figure] for each in seen], digits=4)
            for figure in seen[0][session]
        }
        for session in seen[0]
    }


def _wait(
    process: subprocess.Popen[bytes], holds: Callable[[], bool] | None, scratch: Path
) -> None:
    """Wait until ``holds``, or for the process's end.

    Raises:
        UserError: it failed, or takes too long.
    """
    deadline = time.monotonic() + _MOST_SECONDS
    while holds is None or not holds():
        if process.poll() is not None:
            if process.returncode == 0 and holds is None:
                return
            raise UserError(f"the run ended early: {(scratch / 'output').read_text()[-500:]}")
        if time.monotonic() > deadline:
            raise UserError(f"the run takes longer than {_MOST_SECONDS:.0f} s")
        time.sleep(_LOOK_SECONDS)


def _count(folder: Path, kind: str, session: int) -> int:
    """Return the number of events of a kind in a session; 0 before there is a run."""
    return len(_rows(folder, kind, session))


def _children(folder: Path, session: int) -> list[dict[str, Any]]:
    return [json.loads(body) for body in _rows(folder, "child", session)]


def _rows(folder: Path, kind: str, session: int) -> list[str]:
    path = folder / "run.db"
    if not path.exists():
        return []
    db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        query = "SELECT body FROM events WHERE kind = ? AND session = ? ORDER BY seq"
        return [str(body) for (body,) in db.execute(query, (kind, session))]
    finally:
        db.close()


if __name__ == "__main__":
    run_as_command(main)

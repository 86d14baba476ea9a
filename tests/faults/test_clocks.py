"""A wall clock that jumps by years, forward and back: nothing that a run does depends on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from command import assert_complete, read_summary
from events import PLAIN, assert_same_run, plain_events
from power import compiled

ARGUMENTS = (*PLAIN, "budget.candidates=24", "name=run", "seed=2")
SEES_IT = """
import time
first, jumps = time.time(), []
for _ in range(8):
    time.sleep(0.8)
    jumps.append(abs(time.time() - first) > 1000)
print(any(jumps))
"""


def test_a_run_does_not_look_at_the_wall_clock(tmp_path: Path) -> None:
    jumping = {**os.environ, "LD_PRELOAD": str(compiled("clock", tmp_path))}
    seen = subprocess.run(
        [sys.executable, "-c", SEES_IT], env=jumping, capture_output=True, text=True, check=True
    )
    assert seen.stdout == "True\n"
    for folder, environment in (("steady", dict(os.environ)), ("jumping", jumping)):
        done = subprocess.run(
            [sys.executable, "-m", "engine.run", *ARGUMENTS, f"runs={tmp_path / folder}"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert_complete(tmp_path / folder / "run", candidates=24)
        assert 0.0 < read_summary(tmp_path / folder / "run")["wall_seconds"] < 1000.0
    assert_same_run(
        plain_events(tmp_path / "jumping" / "run"), plain_events(tmp_path / "steady" / "run")
    )

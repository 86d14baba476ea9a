"""One LMCache server for all workers of a machine, and prompts that another process computes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from command import SECONDS
from disturbed import begun, cpu_ticks, deaths, evaluated, finished, wait_for, workers

from engine.cluster.places import island_folder
from engine.core import Child
from engine.store import read_log

pytestmark = pytest.mark.slow

SMALL = (
    *("problem=signal", "model=smollm2", "fill=none", "search.k=2", "name=run", "cluster=ray"),
    *("model.max_model_len=2048", "model.max_tokens=64", "model.kv_cache_gb=1"),
    *("budget.seconds=null", "evaluation.workers=1", "cache=lmcache", "cache.memory_gb=0.5"),
)
CHUNK = 64
"""Tokens that are stored together; what is left of a prompt is computed where it is needed."""


def servers(folder: Path) -> list[int]:
    """The processes of LMCache servers that have ``folder`` for their disk tier."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            continue
        if "engine.inference.kv_process" in command and f'"{folder}"' in command:
            found.append(int(entry.name))
    return found


def segments() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir() if "brood" in path.name}


def test_workers_of_a_machine_share_a_server_which_outlives_them(tmp_path: Path) -> None:
    before, cache = segments(), tmp_path / "kv"
    process = begun(
        *(*SMALL, f"cache.folder={cache}", f"runs={tmp_path}", "cluster.workers=2"),
        *("islands.count=2", "budget.candidates=24"),
    )
    folder = tmp_path / "run"
    wait_for(process, folder, 2)
    (server,) = servers(cache)
    os.kill(max(workers(process.pid), key=cpu_ticks), signal.SIGKILL)
    wait_for(process, folder, evaluated(folder) + 4)
    assert servers(cache) == [server]
    os.kill(server, signal.SIGKILL)
    out = finished(process)
    assert deaths(out) and "24 candidates evaluated" in out
    assert "the LMCache server failed" in out
    assert servers(cache) == [] and segments() == before
    assert [*cache.glob("*.data")]


def test_prompts_are_computed_by_a_prefiller_and_here_once_it_is_dead(tmp_path: Path) -> None:
    cache, folder = tmp_path / "kv", tmp_path / "run"
    process = begun(
        *(*SMALL, f"cache.folder={cache}", f"runs={tmp_path}", "cluster.prefillers=1"),
        *("islands.count=1", "budget.candidates=60"),
    )
    deadline = time.monotonic() + SECONDS
    # A worker that computes its prompts itself has longer ones among so many.
    while len(last := computed_here(folder)[-8:]) < 8 or max(last) > CHUNK:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.2)
    (prefiller,) = workers(process.pid, kind="Prefiller")
    os.kill(prefiller, signal.SIGKILL)
    out = finished(process)
    assert "a prefiller is lost" in out and "60 candidates evaluated" in out


def computed_here(folder: Path) -> list[int]:
    """Return how many tokens of each call's prompt its worker has computed, in their order."""
    island = island_folder(folder, 0)
    if not island.is_dir():
        return []
    events = [recorded.event for recorded in read_log(island)]
    most: dict[int, int] = {}
    for each in events:
        if isinstance(each, Child):
            computed = each.prompt_tokens - each.cached_prompt_tokens
            most[each.iteration] = max(most.get(each.iteration, 0), computed)
    return [most[iteration] for iteration in sorted(most)]

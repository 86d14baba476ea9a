"""What is set before vLLM is imported."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from pathlib import Path

import pytest

from engine.inference import environment


@pytest.mark.parametrize(
    ("on_cpu", "threads", "expected"),
    [(True, None, "all"), (True, 1, "1"), (True, 10**6, "all"), (False, None, "1")],
)
def test_a_model_on_a_cpu_has_all_cores_and_one_on_a_gpu_a_single_thread(
    monkeypatch: pytest.MonkeyPatch, on_cpu: bool, threads: int | None, expected: str
) -> None:
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(environment, "is_cpu_build", lambda: on_cpu)
    environment.prepare(threads=threads, kv_cache_gb=1)
    every = str(len(os.sched_getaffinity(0)))
    assert os.environ["OMP_NUM_THREADS"] == (every if expected == "all" else expected)
    assert ("VLLM_CPU_KVCACHE_SPACE" in os.environ) == on_cpu


@pytest.mark.parametrize("found", [["nvcc", "ninja"], ["ninja"], []])
def test_a_run_on_a_gpu_says_which_compilers_are_missing(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    found: list[str],
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    monkeypatch.setattr(os, "environ", {"PATH": str(tmp_path)})
    monkeypatch.setattr(environment, "is_cpu_build", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda name: name if name in found else None)
    environment.prepare(threads=None, kv_cache_gb=1)
    missing = [name for name in ("nvcc", "ninja") if name not in found]
    assert [" and ".join(missing) in each for each in caplog.messages] == [True] * bool(missing)
    assert os.environ["VLLM_LOGGING_LEVEL"] == "WARNING"  # vLLM's warnings name such kernels
    assert os.environ["PATH"] == f"{tmp_path}/environment/bin:{tmp_path}"


def test_what_vllm_says_of_its_own_seed_is_kept_back(caplog: pytest.LogCaptureFixture) -> None:
    from vllm.engine import arg_utils

    environment.prepare(threads=1, kv_cache_gb=1)
    told = "The global random seed is set to %d."
    assert told.partition("%d")[0] in Path(arg_utils.__file__).read_text(encoding="utf-8")
    log = logging.getLogger("vllm.engine.arg_utils")
    with caplog.at_level(logging.WARNING, log.name):
        log.addHandler(caplog.handler)  # vLLM's do not reach the root
        log.warning(told, 0)
        log.warning("anything else")
        log.removeHandler(caplog.handler)
    assert set(caplog.messages) == {"anything else"}

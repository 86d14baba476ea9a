"""What is set before vLLM is imported."""

from __future__ import annotations

import os

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

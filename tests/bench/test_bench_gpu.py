"""``bench.gpu`` without a GPU, what its failures say, its floor against published figures."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bench import gpu
from bench.floor import step_bytes
from bench.gpu_model import Bench, NotRunError
from engine.core import UserError
from install.stack import Stack

ROOT = Path(__file__).parents[2]
NO_GPU = Stack(name="cpu", reason="no GPU in this test")
RATE = 3e12  # bytes a second of an H100


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "choose_stack", lambda _: NO_GPU)


def bench(*arguments: str, on_gpu: bool = False) -> Bench:
    """Return what a benchmark with these arguments begins with."""
    made = gpu.read_bench(list(arguments), ExitStack())
    made.on_gpu = on_gpu
    return made


def attempted(
    monkeypatch: pytest.MonkeyPatch, stage: Any, *arguments: str, limit: float = 60
) -> dict[str, Any]:
    """Return what comes of a stage of a test's own."""
    monkeypatch.setitem(gpu.STAGES, "machine", (stage, limit, "change this"))
    return gpu.attempt("machine", bench(*arguments, on_gpu=True))


def test_without_a_gpu_the_last_line_is_json_and_nothing_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert gpu.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    result = json.loads(lines[-1])
    assert [line.split()[0] for line in lines[:-1]] == list(gpu.STAGES) == list(result["stages"])
    assert result["gpu"] is False
    status = {name: each["status"] for name, each in result["stages"].items()}
    assert [name for name, each in status.items() if each == "ok"] == ["machine", "tools", "plan"]
    left_out = [each for each in result["stages"].values() if each["status"] != "ok"]
    assert left_out == [{"status": "not run", "why": "no GPU"}] * 6
    assert result["stages"]["machine"]["why"] == NO_GPU.reason
    assert all("of the GPU's 79.0 GiB" in result["stages"]["plan"][name] for name in gpu.PRESETS)


def test_a_card_that_is_too_small_names_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["stages=plan", "memory_gib=24"]) == 1
    (failed,) = json.loads(capsys.readouterr().out.splitlines()[-1])["stages"].values()
    assert failed["status"] == "failed"
    assert "of the GPU's 24.0 GiB" in failed["why"] and "lower model.max_num_seqs" in failed["why"]


def test_a_gpu_with_packages_for_a_cpu_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu, "choose_stack", lambda _: Stack(name="cuda", reason=""))
    monkeypatch.setattr(gpu, "is_cpu_build", lambda: True)
    failed = gpu.attempt("machine", gpu.read_bench([], ExitStack()))
    assert failed["status"] == "failed" and "STACK=cuda" in failed["why"]


def test_missing_compilers_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gpu, "compilers", lambda _: {"PATH": str(tmp_path)})
    assert gpu.tools(bench())["nvcc"] is None
    with pytest.raises(UserError, match=r"nvcc, ninja, c\+\+ not found; .*STACK=cuda.*CUDA_HOME"):
        gpu.tools(bench(on_gpu=True))


def test_weights_that_are_not_there_are_a_line() -> None:
    failed = gpu.attempt("load", bench("model=/nowhere/at/all", on_gpu=True))
    assert failed["status"] == "failed" and "give model.path" in failed["why"]


@pytest.mark.parametrize("name", ["correctness", "decode", "fanout", "bare", "run"])
def test_stages_after_a_load_that_failed_are_left_out(name: str) -> None:
    left_out = gpu.attempt(name, bench(on_gpu=True))
    assert left_out == {"status": "not run", "why": "the model is not loaded"}


def test_a_failure_is_one_line_that_says_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Bench) -> dict[str, Any]:
        raise RuntimeError("of many\nlines" + "!" * 1000)

    failed = attempted(monkeypatch, fails)
    assert failed["status"] == "failed"
    assert failed["why"].startswith("RuntimeError: of many lines!")
    assert failed["why"].endswith("; change this") and len(failed["why"]) < 400


def test_a_stage_that_does_not_apply_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def declines(_: Bench) -> dict[str, Any]:
        raise NotRunError("for a reason")

    assert attempted(monkeypatch, declines) == {"status": "not run", "why": "for a reason"}


def test_a_stage_ends_with_its_time_whatever_it_catches(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(_: Bench) -> dict[str, Any]:
        while True:
            try:
                time.sleep(60)
            except Exception:
                continue

    failed = attempted(monkeypatch, hangs, limit=1.1)
    assert failed == {"status": "failed", "why": "not done after 1 s; change this"}
    assert attempted(monkeypatch, hangs, "seconds=0.5") == {
        "status": "not run",
        "why": "no time left; raise seconds=",
    }


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("stages=machine,magic", "stages=magic"),
        ("problem=none", "problem=none"),
        ("k=1,many", "k=many"),
        ("prefix=0", "prefix=0"),
        ("seconds=0", "seconds=0"),
        ("memory_gib=nan", "memory_gib=nan"),
        ("model=nosuch", "nosuch"),
        ("model=mutation", "no language model"),
        ("model.nosuch=1", "nosuch"),
        ("gpu=1", "'gpu=1' is no option"),
    ],
)
def test_bad_arguments_are_named(argument: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        bench(argument)


def test_settings_and_dummy_weights_get_to_the_engine(tmp_path: Path) -> None:
    made = bench("load_format=dummy", f"model.path={tmp_path}", "model.max_num_seqs=32")
    assert made.settings.model.engine == {"load_format": "dummy"}
    assert (made.settings.model.path, made.settings.model.max_num_seqs) == (str(tmp_path), 32)
    assert max(made.prefixes()) == 8192
    assert max(bench("model.max_model_len=4096", "model.max_tokens=64").prefixes()) < 4096


@pytest.mark.parametrize(
    ("k", "prefix", "unshared", "shared"),
    [(8, 8192, 2.14, 0.27), (32, 8192, 8.55, 0.27), (64, 16384, 34.2, 0.53)],
)
def test_kv_that_is_read_takes_what_was_worked_out_by_hand(
    k: int, prefix: int, unshared: float, shared: float
) -> None:
    """48 layers with 4 KV heads of 128 numbers of 16 bits, at 3 TB/s; ms."""
    read = step_bytes(gpu.CONFIGS / "qwen3_coder_30b", k=k, prefix=prefix, suffix=0)
    assert 1e3 * read.unshared / RATE == pytest.approx(unshared, rel=0.02)
    assert 1e3 * read.shared / RATE == pytest.approx(shared, rel=0.02)
    longer = step_bytes(gpu.CONFIGS / "qwen3_coder_30b", k=k, prefix=prefix, suffix=10)
    assert longer.shared - read.shared == longer.unshared - read.unshared == k * 10 * 96 * 1024


@pytest.mark.parametrize(
    ("name", "active", "every"),
    [("qwen3_coder_30b", 3.3, 30.5), ("qwen3_6_35b_a3b", 3.0, 34.7), ("qwen3_6_27b", 26.9, 26.9)],
)
def test_a_child_reads_the_active_parameters_and_many_read_all(
    name: str, active: float, every: float
) -> None:
    """Billions as published, of a byte each; the output's vocabulary has two."""
    one, many = (
        step_bytes(gpu.CONFIGS / name, k=k, prefix=1, suffix=0).weights / 1e9 for k in (1, 4096)
    )
    assert active * 0.85 < one < active * 1.25
    assert every * 0.95 < many < every * 1.1


def test_states_are_read_and_written_for_each_child() -> None:
    read = step_bytes(gpu.CONFIGS / "qwen3_6_27b", k=2, prefix=0, suffix=0)
    one = 48 * (2 * 3 * 10240 + 4 * 48 * 128 * 128)
    assert read.shared == read.unshared == 2 * 2 * one


@pytest.mark.slow
def test_the_stages_with_a_model_run_on_a_cpu() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench.gpu", "model=smollm2", "model.kv_cache_gb=1"),
            *("stages=load,correctness,decode,fanout,bare,run", "k=1,4,999", "prefix=128"),
            *("calls=1", "run=30", "seconds=5000"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    stages = json.loads(done.stdout.splitlines()[-1])["stages"]
    assert {each["status"] for each in stages.values()} == {"ok"}
    assert stages["load"]["read_gb_per_second"] > 0
    assert stages["correctness"]["right"] == 8
    cells = {each["k"]: each for each in stages["decode"]["cells"]}
    assert cells[1]["floor_ms"] == cells[1]["shared_floor_ms"]
    assert cells[4]["floor_ms"] > cells[4]["shared_floor_ms"] > 0
    assert set(cells) == {1, 4}  # the engine does not run 999 at once
    assert stages["fanout"]["gain"]["1"] == 1.0
    assert stages["bare"]["ratio"] > 0
    assert stages["run"]["children"] > 0

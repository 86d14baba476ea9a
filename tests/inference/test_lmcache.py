"""The LMCache server beside a run: warm starts, every way for it to fail, nothing left behind."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba  # before the engine: without a repair, vLLM can't start after it
import pytest
import torch
from kv_layouts import full_attention, hybrid
from kv_sessions import (
    SECONDS,
    SESSION,
    SHARED_MEMORY,
    assert_complete,
    processes,
    segments,
    session,
)

from engine import config
from engine.core import UserError
from engine.inference import kv_server, kv_transfer
from engine.inference.kv_process import UsedChunks, prune
from engine.settings import CacheSettings

assert numba.__version__


def eventually(holds: Any, seconds: float = SECONDS) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def chunks(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.data"))


@pytest.fixture
def settings(tmp_path: Path) -> CacheSettings:
    folder = tmp_path / "kv"
    return config.resolve(["cache=lmcache", "cache.memory_gb=0.1", f"cache.folder={folder}"]).cache


@pytest.fixture(scope="module")
def stopped_then_killed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two processes saw, one after the other, on one folder.

    The first one's server was stopped in the middle of its second prompt, the other one's killed.
    """
    folder = tmp_path_factory.mktemp("kv")
    return [session(folder, fault=fault) for fault in (signal.SIGSTOP, signal.SIGKILL)]


@pytest.mark.slow
def test_a_second_process_starts_warm(stopped_then_killed: list[dict[str, Any]]) -> None:
    cold, warm = (seen["answers"][0] for seen in stopped_then_killed)
    tokens = cold["prompt_tokens"]
    assert 640 <= tokens <= 1000  # many chunks, so that most of it is in whole ones
    assert cold["cached"][0] == 0
    assert all(cached >= 0.9 * tokens for cached in warm["cached"])
    # What the engine computes from loaded KV is what it computes from its own.
    assert warm["texts"] == cold["texts"]


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1], ids=["stopped", "killed"])
def test_a_server_that_fails_costs_no_child_and_is_said_once(
    stopped_then_killed: list[dict[str, Any]], which: int
) -> None:
    seen = stopped_then_killed[which]
    assert_complete(seen)
    (line,) = seen["warnings"]
    assert line.startswith("the LMCache server failed")
    assert line.endswith("the run goes on without it")


@pytest.mark.slow
def test_what_a_failed_server_leaves_goes_when_the_next_one_starts(
    stopped_then_killed: list[dict[str, Any]],
) -> None:
    stopped, killed = (seen["left"] for seen in stopped_then_killed)
    assert len(stopped) == len(killed) == 1  # the log of the one that failed last
    assert stopped != killed


@pytest.mark.slow
def test_a_server_that_is_full_costs_no_child_and_is_no_fault(tmp_path: Path) -> None:
    """Its memory has room for four of the five prompts; its folder keeps them all."""
    given = {"dtype": "float32", "memory_gb": 0.1, "lines": 40}
    cold, warm = (session(tmp_path, **given) for _ in range(2))
    for seen in (cold, warm):
        assert_complete(seen)
        assert seen["warnings"] == seen["left"] == []
    assert chunks(tmp_path)
    assert [each["texts"] for each in warm["answers"]] == [
        each["texts"] for each in cold["answers"]
    ]


@pytest.mark.slow
def test_an_engine_that_is_loaded_again_uses_the_server_and_goes_on_without(tmp_path: Path) -> None:
    seen = session(tmp_path, fault=signal.SIGKILL, reload=True)
    cold, warm, *_ = seen["answers"]
    assert cold["cached"][0] == 0
    assert all(cached >= 0.9 * warm["prompt_tokens"] for cached in warm["cached"])
    assert warm["texts"] == cold["texts"]
    assert [each["generated"] for each in seen["answers"]] == [[12] * 4] * 6
    assert len(seen["warnings"]) == 1  # of the server that was killed


@pytest.mark.slow
def test_a_server_that_is_not_there_is_gone_without(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    seen = session(tmp_path, server=f"127.0.0.1:{port}")
    assert_complete(seen)
    (line,) = seen["warnings"]
    assert line.startswith("no LMCache server")


@pytest.mark.slow
def test_two_processes_join_one_server(settings: CacheSettings, tmp_path: Path) -> None:
    with kv_server(settings, chunk_tokens=64, on_gpu=False) as server:
        transfer = kv_transfer(server, weights=weights(tmp_path / "weights"))
        assert transfer is not None
        first, second = (session(tmp_path, server=f"127.0.0.1:{transfer.port}") for _ in range(2))
    assert first["warnings"] == second["warnings"] == []
    cold, warm = (seen["answers"][0] for seen in (first, second))
    assert cold["cached"][0] == 0
    assert all(cached >= 0.9 * warm["prompt_tokens"] for cached in warm["cached"])


@pytest.mark.slow
def test_a_format_is_never_given_the_chunks_of_another(tmp_path: Path) -> None:
    formats = ["bfloat16", "float32", "bfloat16"]
    first, other, again = (session(tmp_path, dtype=dtype)["answers"][0] for dtype in formats)
    assert first["cached"][0] == other["cached"][0] == 0
    assert all(cached >= 0.9 * again["prompt_tokens"] for cached in again["cached"])
    assert again["texts"] == first["texts"]


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("model_config", "dtype", torch.float32),
        ("model_config", "quantization", "compressed-tensors"),
        ("cache_config", "cache_dtype", "fp8"),
        ("cache_config", "block_size", 64),
        ("device_config", "device_type", "cuda"),
        ("load_config", "load_format", "dummy"),
        ("model_config", "hf_overrides", {"rope_theta": 1e6}),
    ],
)
def test_what_changes_the_bytes_of_a_chunk_changes_its_key(
    part: str, name: str, value: object
) -> None:
    from engine.inference.kv_connector import _namespace

    def parts() -> SimpleNamespace:
        return SimpleNamespace(
            model_config=SimpleNamespace(dtype=torch.bfloat16, quantization=None, hf_overrides={}),
            load_config=SimpleNamespace(load_format="auto"),
            cache_config=SimpleNamespace(cache_dtype="auto", block_size=32),
            device_config=SimpleNamespace(device_type="cpu"),
        )

    changed = parts()
    setattr(getattr(changed, part), name, value)
    assert _namespace("weights", parts()) == _namespace("weights", parts())
    assert _namespace("weights", changed) != _namespace("weights", parts())


def test_a_token_has_the_kv_of_all_layers() -> None:
    from engine.inference.kv_connector import token_bytes

    # 48 layers of 4 heads of 128 numbers, keys and values, of two bytes.
    small = SimpleNamespace(kv_cache_groups=full_attention().groups)
    assert token_bytes(small) == 48 * 4 * 128 * 2 * 2
    # 16 layers of attention, and 48 of state, whose blocks are padded to those of attention.
    large = SimpleNamespace(kv_cache_groups=hybrid().groups)
    assert token_bytes(large) == (16 + 48) * 4 * 256 * 2 * 2


def weights(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that starts slowly on a loaded machine is no failure."""
    module = sys.modules["engine.inference.kv_server"]  # the package has a function of that name
    monkeypatch.setattr(module, "_START_SECONDS", 600.0)


def test_a_server_dies_with_a_run_that_is_killed(tmp_path: Path) -> None:
    before = segments()
    folder = tmp_path / "kv"
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from engine.inference import kv_server, kv_transfer\n"
        "from engine.settings import CacheSettings\n"
        "sys.modules['engine.inference.kv_server']._START_SECONDS = 600.0\n"
        "settings = CacheSettings(kind='lmcache', memory_gb=0.1, disk_gb=1.0,\n"
        "    folder=sys.argv[1], server=None)\n"
        "with kv_server(settings, chunk_tokens=64, on_gpu=False) as server:\n"
        "    print(kv_transfer(server, weights=Path(sys.argv[2])).port, flush=True)\n"
        "    time.sleep(1000)\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", code, str(folder), str(weights(tmp_path / "weights"))],
        stdout=subprocess.PIPE,
        env={**os.environ, "BROOD_TEST": str(folder)},
    )
    assert run.stdout is not None
    with run:
        try:
            assert int(run.stdout.readline()) > 0
            assert len(processes(folder)) >= 2
            assert len(segments() - before) == 1
        finally:
            run.kill()
    assert eventually(lambda: processes(folder) == [])
    assert segments() == before
    assert list(folder.iterdir()) == []


def test_what_a_killed_run_and_server_left_is_removed_by_the_next(
    settings: CacheSettings, tmp_path: Path
) -> None:
    folder = Path(settings.folder)
    left = folder / "server-0123abcd"
    left.mkdir(parents=True)
    (left / "log").write_text("killed")
    segment = SHARED_MEMORY / "lmcache_l1_pool_brood_0123abcd"
    segment.write_bytes(b"")
    with kv_server(settings, chunk_tokens=64, on_gpu=False) as server:
        assert server is not None
        assert not left.exists() and not segment.exists()
        with kv_server(settings, chunk_tokens=64, on_gpu=False):
            assert server.log.exists(), "a server that is in use was taken for a stale one"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("where", ["file", "/proc/brood"])
def test_a_folder_that_cannot_be_used_is_said_and_gone_without(
    settings: CacheSettings, tmp_path: Path, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    unusable = replace(settings, folder=str(tmp_path / where))
    with kv_server(unusable, chunk_tokens=64, on_gpu=False) as server:
        assert server is None
        assert kv_transfer(server, weights=tmp_path) is None
    (line,) = caplog.messages
    assert line.startswith("no LMCache server, so this run starts cold")


def test_a_server_that_does_not_start_is_said_and_its_log_is_kept(
    settings: CacheSettings,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "lmcache.py").write_text("raise ImportError('broken installation')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with kv_server(settings, chunk_tokens=64, on_gpu=False) as server:
        assert server is not None
        assert kv_transfer(server, weights=weights(tmp_path / "weights")) is None
        (line,) = caplog.messages
        assert str(server.log) in line
    assert "broken installation" in server.log.read_text()


@pytest.fixture
def tier(tmp_path: Path) -> Iterator[Path]:
    """A disk tier of ten chunks of 1,000 bytes, the last one used longest ago."""
    ages = itertools.count(1_000_000, -1000)
    for number in range(10):
        path = tmp_path / f"model@0x00000000@0@{number:064x}.data"
        path.write_bytes(bytes(1000))
        age = next(ages)
        os.utime(path, (age, age))
    (tmp_path / "server-1").mkdir()
    yield tmp_path


def test_a_disk_tier_within_its_bound_is_left_alone(tier: Path) -> None:
    prune(tier, 10_000)
    assert len(chunks(tier)) == 10


def test_what_was_not_used_for_longest_is_removed_first(tier: Path) -> None:
    kept = chunks(tier)[:4]
    # 10,000 bytes are 5,000 too many; room for a tenth of the bound more is 500.
    prune(tier, 5_000)
    assert chunks(tier) == kept
    assert (tier / "server-1").is_dir()


def test_a_chunk_that_is_used_in_memory_is_kept_on_disk(
    tier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMCACHE_LOG_LEVEL", "CRITICAL")  # read when it is imported
    from lmcache.v1.distributed.api import ObjectKey

    oldest = chunks(tier)[-1]
    key = ObjectKey(chunk_hash=(9).to_bytes(32, "big"), model_name="model", kv_rank=0)
    gone = ObjectKey(chunk_hash=(99).to_bytes(32, "big"), model_name="model", kv_rank=0)
    used = UsedChunks(tier)
    used.on_l1_keys_reserved_read([key, gone])
    used.mark()
    prune(tier, 1_500)
    assert chunks(tier) == [oldest]


def test_a_folder_that_is_gone_is_pruned_without_an_error(tmp_path: Path) -> None:
    prune(tmp_path / "gone", 0)
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("cache=memcached", "unknown cache 'memcached'; valid: lmcache, none"),
        ("cache.kind=disk", "cache.kind is 'disk'; it must be 'none' or 'lmcache'"),
        ("cache.server=10.0.0.1:5555", "must be 127.0.0.1:PORT"),
        ("cache.server=localhost", "must be 127.0.0.1:PORT"),
        ("cache.server=127.0.0.1:0", "must be 127.0.0.1:PORT"),
        ("cache.server=127.0.0.1:65536", "must be 127.0.0.1:PORT"),
        ("cache.server='127.0.0.1:1\n'", "must be 127.0.0.1:PORT"),
        ("cache.server_pid=7", "cache.server_pid is 7; it must be null unless cache.server is"),
        ("cache.remote=localhost:6379", "must be redis://HOST:PORT"),
        ("cache.remote=redis://localhost", "must be redis://HOST:PORT"),
        ("cache.remote=redis://localhost:0", "must be redis://HOST:PORT"),
        ("cache.remote=redis://localhost:65536", "must be redis://HOST:PORT"),
        ("cache.remote=redis://localhost:6379/1", "must be redis://HOST:PORT"),
        ("cache.remote=redis://me:secret@localhost:6379", "with no password in it"),
        ("cache.memory_gb=0", "cache.memory_gb is 0; it must be 0.1 or more"),
        ("cache.memory_gb=inf", "cache.memory_gb is inf; it must be a finite number"),
        ("cache.disk_gb=-1", "cache.disk_gb is -1; it must be 0.1 or more"),
        ("cache.folder=''", "cache.folder is ''; it must be a folder"),
    ],
)
def test_bad_settings_are_refused_in_one_line(argument: str, message: str) -> None:
    with pytest.raises(UserError) as raised:
        config.resolve([argument])
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_no_preset_uses_a_server_unless_it_is_asked_for() -> None:
    for preset in ("smollm2", "qwen3_coder_30b", "qwen3_6_27b", "qwen3_6_35b_a3b", "derived"):
        assert config.resolve([f"model={preset}"]).cache.kind == "none"
    assert config.resolve(["model=qwen3_coder_30b", "cache=lmcache"]).cache.kind == "lmcache"


@pytest.mark.slow
def test_a_prompt_that_another_process_has_computed_is_there_when_it_says_so(
    settings: CacheSettings, tmp_path: Path
) -> None:
    with kv_server(settings, chunk_tokens=64, on_gpu=False) as server:
        transfer = kv_transfer(server, weights=weights(tmp_path / "weights"))
        assert transfer is not None
        given = {"folder": str(tmp_path), "server": f"127.0.0.1:{transfer.port}"}
        command = [sys.executable, str(SESSION), json.dumps({**given, "only_prefill": True})]
        subprocess.run(command, check=True, timeout=SECONDS)
        answer = session(tmp_path, server=given["server"])["answers"][0]
    assert all(cached >= 0.9 * answer["prompt_tokens"] for cached in answer["cached"])

"""``brood doctor``: it says what would stop a run here, imports no vLLM, and changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from engine import config
from engine.checking.finding import Finding, Level
from engine.doctor import examined
from engine.doctor.machine import disk, machine
from engine.doctor.model import cache
from engine.inference import is_cpu_build
from engine.inference.compat import versions
from engine.memory import available_bytes, total_bytes


def doctor(
    *arguments: str, cwd: Path, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command, with a folder that comes before the installed packages."""
    environ = {**os.environ, **({} if path is None else {"PYTHONPATH": str(path)})}
    command = [sys.executable, "-m", "engine.doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environ)


def found(*arguments: str) -> dict[str, list[Finding]]:
    by_check: dict[str, list[Finding]] = {}
    for finding in examined(config.resolve(arguments)):
        by_check.setdefault(finding.check, []).append(finding)
    return by_check


def test_a_healthy_machine_where_vllm_is_broken(tmp_path: Path) -> None:
    (tmp_path / "broken" / "vllm").mkdir(parents=True)
    (tmp_path / "broken" / "vllm" / "__init__.py").write_text("raise ImportError('broken')")
    before = sorted(tmp_path.rglob("*"))
    done = doctor(f"runs={tmp_path}/runs", cwd=tmp_path, path=tmp_path / "broken")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
    *lines, last = done.stdout.splitlines()
    assert last.startswith("0 would stop a run, ")
    checks = [line.split()[1] for line in lines]
    assert {"machine", "memory", "limits", "disk", "problem", "walls", "packages", "model"} <= {
        *checks
    }
    assert any("walls of the sandbox: files" in line for line in lines)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_would_stop_a_run_is_said_and_is_the_exit_code(tmp_path: Path) -> None:
    empty = tmp_path / "model"
    empty.mkdir()
    (empty / "config.json").write_text(json.dumps({"max_position_embeddings": 2048}))
    (tmp_path / "file").touch()
    done = doctor(f"model.path={empty}", f"runs={tmp_path}/file", cwd=tmp_path)
    assert done.returncode == 1
    errors = [line for line in done.stdout.splitlines() if line.startswith("error")]
    assert any("no *.safetensors in" in line for line in errors)
    assert any("file can't be written; set runs=FOLDER" in line for line in errors)
    assert done.stdout.splitlines()[-1].startswith(f"{len(errors)} would stop a run")
    done = doctor("sede=1", cwd=tmp_path)
    assert done.returncode == 2 and "did you mean seed?" in done.stderr


def test_a_model_that_is_not_here() -> None:
    (finding,) = found("model.path=somebody/nothing")["model"]
    assert finding.level is Level.ERROR and "is not on this machine" in finding.message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pool.sources=[/nonexistent]"], "pool /nonexistent is not a folder"),
        (["name={recorded}"], "exists; give another name=, or go on with resume="),
        (["search.archive=problem", "problem=circle_packing"], "problem.yaml with features"),
    ],
)
def test_what_a_run_that_begins_is_refused_for(
    recorded_run: Path, arguments: list[str], words: str
) -> None:
    given = [each.format(recorded=recorded_run.name) for each in arguments]
    (finding,) = found("model=mutation", f"runs={recorded_run.parent}", *given)["run"]
    assert finding.level is Level.ERROR and words in finding.message


@pytest.mark.parametrize(
    ("argument", "check"),
    [("problem.path=/no/such/folder", "problem"), ("runs=~nobody-has-this-name/x", "disk")],
)
def test_what_is_wrong_is_said_once(argument: str, check: str) -> None:
    every = [each for some in found(argument, "model=mutation").values() for each in some]
    assert [each.check for each in every if each.level is Level.ERROR] == [check]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("model.engine.foo=1", "model.engine.foo: vLLM's EngineArgs has no such field"),
        ("model.engine.seed=1", "model.engine.seed can't be given: give seed"),
        ("model.engine.max_logprobs=5", None),
    ],
)
def test_options_that_vllm_does_not_have(option: str, words: str | None) -> None:
    errors = [each.message for each in found(option)["model"] if each.level is Level.ERROR]
    assert len(errors) == (words is not None) and all(str(words) in each for each in errors)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A folder with the files of a small model."""
    shape = {"num_hidden_layers": 1, "num_attention_heads": 1, "hidden_size": 8}
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 2048, **shape}))
    save_file({"one": np.zeros(2)}, tmp_path / "model.safetensors")
    return tmp_path


def levels_of_model(weights: Path) -> tuple[list[Level], str]:
    findings = found(f"model.path={weights}")["model"]
    return [each.level for each in findings], findings[-1].message


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("model.safetensors", b"", "model.safetensors can't be read: "),
        ("model.safetensors", b"cut", "model.safetensors can't be read: "),
        ("more.bin", b"", "more.bin is empty"),
        ("config.json", b"[1]", "config.json holds no object"),
        ("config.json", b'{"a":', "config.json can't be read: "),
        ("config.json", b"\xff", "config.json can't be read: "),
    ],
)
def test_a_model_of_which_a_file_is_damaged(
    weights: Path, file: str, content: bytes, words: str
) -> None:
    assert levels_of_model(weights)[0] == [Level.OK]
    (weights / file).write_bytes(content)
    levels, message = levels_of_model(weights)
    assert levels == [Level.ERROR] and words in message


def test_a_download_that_was_cut_short(weights: Path) -> None:
    file = weights / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    levels, message = levels_of_model(weights)
    assert levels == [Level.ERROR] and f"{file} can't be read" in message


@pytest.mark.skipif(not is_cpu_build(), reason="on a GPU the plan of its memory says it")
def test_a_configuration_that_lacks_what_most_have(weights: Path) -> None:
    (weights / "config.json").write_text('{"a": 1}')
    levels, message = levels_of_model(weights)
    assert levels == [Level.OK, Level.WARNING] and "num_hidden_layers" in message


def test_a_server_that_is_away() -> None:
    (finding,) = found("store=postgresql://127.0.0.1:9/none", "model=mutation")["store"]
    assert finding.level is Level.ERROR and "can't be asked" in finding.message


def test_too_much_memory_asked_for() -> None:
    wanted = 2 + total_bytes() // 2**30
    (finding,) = (
        each for each in found(f"model.kv_cache_gb={wanted}")["memory"] if "plan" in each.message
    )
    assert finding.level is Level.ERROR and f"KV {wanted} GiB" in finding.message
    assert 0 < available_bytes() <= total_bytes()


def test_other_versions_than_the_hooks_were_read_against(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {each.level for each in found()["packages"]} == {Level.OK}
    others = {package: "0.0.1" for package in versions()}
    monkeypatch.setattr("engine.doctor.packages.versions", lambda: others)
    findings = found()["packages"]
    assert {each.level for each in findings} == {Level.WARNING}
    assert all("read against 0.0.1" in each.message for each in findings)


@pytest.mark.parametrize(
    ("most", "level", "said"), [(200, "error", "200 open"), (2000, "ok", "1,024 open")]
)
def test_few_descriptors(most: int, level: str, said: str) -> None:
    """A run raises its own limit as far as it may, so that is what counts."""
    code = (
        "import resource; from engine.doctor.machine import limits\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (200, {most}))\n"
        "first, _ = limits(); print(first.level, first.message)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{level} {said}")


def test_a_disk_with_less_than_is_wanted(tmp_path: Path) -> None:
    assert disk("runs", tmp_path / "a" / "b", remedy="", wanted=1).level is Level.OK
    assert disk("runs", tmp_path, remedy="", wanted=1 << 62).level is Level.WARNING
    findings = found("cache=lmcache", "cache.memory_gb=1000000")["disk"]
    (short,) = (each for each in findings if "shared memory" in each.message)
    assert short.level is Level.WARNING and "cache.memory_gb" in short.remedy


def test_a_build_for_cuda_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.doctor.machine.is_cpu_build", lambda: False)
    monkeypatch.setattr("engine.doctor.model.is_cpu_build", lambda: False)
    (gpu,) = (each for each in machine() if each.check == "gpu")
    assert gpu.level is Level.WARNING and "nvidia-smi" in gpu.remedy
    kept = cache(config.resolve(["cache=lmcache", "cache.memory_gb=1000000"]))
    assert not any("shared memory" in each.message for each in kept)  # it would be pinned

"""``model.dtype=auto`` on a CPU: measured once, remembered for what it was measured for."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numba  # before the engine: without a repair, vLLM can't start after it
import pytest
import torch
from safetensors.torch import save_file

from engine import config, memory
from engine.core import UserError
from engine.inference import in_its_format, number_format
from engine.inference.linear_speed import ROWS, linear_times
from engine.inference.number_format import FORMATS, Choice
from engine.settings import Dtype, ModelSettings

assert numba.__version__


@pytest.fixture(autouse=True)
def on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(number_format, "is_cpu_build", lambda: True)
    version(monkeypatch, "1.0")
    new_process(monkeypatch)


def version(monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    """Have every package in this version."""
    installed = SimpleNamespace(version=lambda name: f"{name} {number}")
    monkeypatch.setattr(number_format, "metadata", installed)


def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what this process knows, as one that starts does."""
    monkeypatch.setattr(number_format, "_found", {})


@pytest.fixture
def settings(tmp_path: Path) -> ModelSettings:
    return config.resolve([f"model.cache_dir={tmp_path / 'cache'}"]).model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of two layers and an output layer that is its embedding too."""
    made = tmp_path / "model"
    made.mkdir()
    (made / "config.json").write_text(json.dumps({"vocab_size": 64}))
    weights = {
        "model.embed_tokens.weight": torch.ones(64, 32),
        "model.norm.weight": torch.ones(32),
        "model.up_proj.weight": torch.ones(128, 32),
        "model.down_proj.weight": torch.ones(32, 128),
        "model.experts": torch.ones(2, 32, 32),
        "lm_head.weight": torch.ones(64, 32),
    }
    save_file(weights, made / "model.safetensors")
    return made


class Measured:
    """Stands in for a measurement: seconds of each format at 8 and 32 rows."""

    def __init__(self, **seconds: tuple[float, float]) -> None:
        self.calls = 0
        self._seconds = seconds

    def __call__(
        self, folder: Path, *, formats: Sequence[str], most_seconds: float
    ) -> Mapping[Any, Mapping[int, Sequence[float]]]:
        assert tuple(formats) == FORMATS and 0 < most_seconds < 20
        self.calls += 1
        return {
            name: dict(zip(ROWS, ((each, 9.0, each) for each in self._seconds[name]), strict=True))
            for name in formats
        }


def with_bf16() -> Measured:
    return Measured(bfloat16=(0.02, 0.03), float32=(0.04, 0.12))


def without_bf16() -> Measured:
    return Measured(bfloat16=(0.06, 0.30), float32=(0.05, 0.10))


def test_the_formats_are_those_that_can_be_asked_for() -> None:
    assert {"auto", *FORMATS} == set(get_args(Dtype))


@pytest.mark.parametrize(
    ("measured", "chosen", "ratio"),
    [
        (with_bf16(), "bfloat16", math.sqrt(2 * 4)),
        (without_bf16(), "float32", math.sqrt(1.2 * 3)),
        # Slower at 8 rows by a little, faster at 32 by much: the mean of the ratios decides.
        (Measured(bfloat16=(0.04, 0.30), float32=(0.05, 0.10)), "float32", math.sqrt(0.8 * 3)),
        (Measured(bfloat16=(0.05, 0.05), float32=(0.05, 0.05)), "bfloat16", 1.0),
        (Measured(bfloat16=(0.0, 0.0), float32=(0.0, 0.0)), "bfloat16", 1.0),  # a coarse clock
    ],
)
def test_the_faster_format_is_taken_and_said_in_a_line(
    measured: Measured,
    chosen: str,
    ratio: float,
    settings: ModelSettings,
    folder: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    assert in_its_format(settings, folder=folder, measure=measured) == replace(
        settings, dtype=chosen
    )
    (other,) = {*FORMATS} - {chosen}
    (line,) = caplog.messages
    assert line.startswith(f"the model computes in {chosen}, here {ratio:.2f} times as fast as ")
    assert other in line and "\n" not in line


def test_what_was_measured_is_used_by_the_next_process(
    settings: ModelSettings,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert in_its_format(settings, folder=folder, measure=without_bf16()).dtype == "float32"
    new_process(monkeypatch)
    caplog.set_level(logging.INFO)
    other = with_bf16()
    assert in_its_format(settings, folder=folder, measure=other).dtype == "float32"
    assert other.calls == 0
    assert "measured before" in caplog.text and "1.90 times" in caplog.text


@pytest.mark.parametrize("what", ["cpu", "threads", "weights", "version", "limit"])
def test_it_is_measured_anew_where_something_else_is_there(
    what: str,
    settings: ModelSettings,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    in_its_format(settings, folder=folder, measure=without_bf16())
    new_process(monkeypatch)
    if what == "cpu":
        info = tmp_path / "cpuinfo"
        info.write_text("processor\t: 0\nmodel name\t: Another CPU\nflags\t\t: fpu avx2\n\n")
        monkeypatch.setattr(number_format, "_CPU_INFO", info)
    elif what == "threads":
        monkeypatch.setenv("OMP_NUM_THREADS", "7")
    elif what == "weights":
        save_file({"a.weight": torch.ones(3, 5)}, folder / "more.safetensors")
    elif what == "version":
        version(monkeypatch, "2.0")
    else:
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    measured = with_bf16()
    assert in_its_format(settings, folder=folder, measure=measured).dtype == "bfloat16"
    assert measured.calls == 1
    assert len(list(Path(settings.cache_dir).iterdir())) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        '{"choice": null}',
        '{"choice": {"format": "float32"}}',
        '{"choice": {"format": "float7", "ratio": 2}}',
        '{"choice": {"format": ["float32"], "ratio": 2}}',
        '{"choice": {"format": "float32", "ratio": "fast"}}',
        '{"choice": {"format": "float32", "ratio": NaN}}',
        '{"choice": {"format": "float32", "ratio": -1}}',
        '{"choice": {"format": "float32", "ratio": Infinity}}',
    ],
)
def test_a_broken_file_is_measured_anew_and_mended(
    text: str, settings: ModelSettings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_its_format(settings, folder=folder, measure=without_bf16())
    (path,) = Path(settings.cache_dir).iterdir()
    path.write_text(text)
    for calls in (1, 0):
        new_process(monkeypatch)
        measured = with_bf16()
        assert in_its_format(settings, folder=folder, measure=measured).dtype == "bfloat16"
        assert measured.calls == calls
    choice = Choice.read(path)
    assert choice is not None and choice.format == "bfloat16"


def test_a_file_of_bytes_that_are_no_text_is_measured_anew(
    settings: ModelSettings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_its_format(settings, folder=folder, measure=without_bf16())
    (path,) = Path(settings.cache_dir).iterdir()
    path.write_bytes(b"\xff\xfe\x00")
    new_process(monkeypatch)
    assert in_its_format(settings, folder=folder, measure=with_bf16()).dtype == "bfloat16"


def test_a_cache_that_cannot_be_written_costs_a_measurement_a_process(
    settings: ModelSettings, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    caplog.set_level(logging.INFO)
    assert in_its_format(settings, folder=folder, measure=without_bf16()).dtype == "float32"
    assert "can't be kept" in caplog.text
    assert in_its_format(settings, folder=folder, measure=with_bf16()).dtype == "float32"


def test_what_is_given_is_not_measured(settings: ModelSettings, folder: Path) -> None:
    measured = with_bf16()
    given = replace(settings, dtype="float32")
    assert in_its_format(given, folder=folder, measure=measured) == given
    assert measured.calls == 0


def test_a_gpu_has_the_choice_of_vllm(
    settings: ModelSettings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(number_format, "is_cpu_build", lambda: False)
    assert in_its_format(settings, folder=folder, measure=with_bf16()).dtype == "auto"


def test_quantised_weights_are_not_measured(settings: ModelSettings, folder: Path) -> None:
    (folder / "config.json").write_text('{"quantization_config": {"quant_method": "fp8"}}')
    measured = without_bf16()
    assert in_its_format(settings, folder=folder, measure=measured).dtype == "bfloat16"
    assert measured.calls == 0


def test_float32_is_out_of_the_question_where_memory_is_short(
    settings: ModelSettings,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    info = tmp_path / "meminfo"
    info.write_text("MemTotal: 9999999 kB\nMemAvailable:    1048576 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", info)
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    measured = without_bf16()
    assert in_its_format(settings, folder=folder, measure=measured).dtype == "bfloat16"
    assert measured.calls == 0
    assert "of the 1 GiB that are free" in caplog.text
    info.write_text(f"MemAvailable: {8 << 20} kB\n")
    # What was said once in a process holds in it.
    assert in_its_format(settings, folder=folder, measure=measured).dtype == "bfloat16"
    new_process(monkeypatch)
    assert in_its_format(settings, folder=folder, measure=measured).dtype == "float32"


@pytest.mark.parametrize("damage", ["none", "empty", "half", "no config", "config"])
def test_a_damaged_model_is_left_to_vllm_to_refuse(
    damage: str, settings: ModelSettings, folder: Path
) -> None:
    weights, described = folder / "model.safetensors", folder / "config.json"
    if damage == "none":
        weights.unlink()
    elif damage == "empty":
        weights.write_bytes(b"")
    elif damage == "half":
        weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    elif damage == "no config":
        described.unlink()
    else:
        described.write_text("[1, 2")
    assert in_its_format(settings, folder=folder).dtype == "bfloat16"
    assert not Path(settings.cache_dir).exists()


def test_every_format_is_measured_at_every_number_of_rows(folder: Path) -> None:
    times = linear_times(folder, formats=FORMATS, most_seconds=0.0)
    assert times.keys() == {*FORMATS}
    for by_rows in times.values():
        assert by_rows.keys() == {*ROWS}
        assert all(len(each) >= 2 and min(each) >= 0 for each in by_rows.values())


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("model.dtype=float16", "must be 'auto', 'bfloat16' or 'float32'"),
        ("model.dtype=null", "must be 'auto', 'bfloat16' or 'float32'"),
        ("model.dtyp=auto", "did you mean model.dtype?"),
    ],
)
def test_bad_formats_are_refused_in_one_line(argument: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        config.resolve([argument])
    assert message in str(refused.value) and "\n" not in str(refused.value)

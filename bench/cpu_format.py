"""Question: in which number format does this CPU decode fastest, and does a start measure it?

Method: for each arm a process with a whole engine of the embedded model on one thread, and one more
that measures the matrix products alone, as a first start does (``engine.inference.linear_speed``).
In each round every arm decodes ``steps`` steps with K = 8 and 32 children of a 420-token prompt,
one arm after the other, each time another one first, and the kernels are measured once. A figure is
the median step of a round, by the process's CPU time, which other work on the machine disturbs
less, and by the wall clock; ratios are taken within a round.

Arms: ``bfloat16`` and ``float32``; ``compiled-*``: with vLLM's torch.compile; ``int8-*``: W8A8, one
scale for each row of the weights and for each token, what is around it in the format named.

``cpu=old`` hides AVX512_BF16 and AMX: vLLM then loads its library for AVX512 alone and chooses the
kernels of such a CPU, and oneDNN keeps to AVX512_VNNI. So the instructions are an older CPU's, and
not the caches, the memory or the clock. What a format brings whole runs: ``bench.cpu_format_runs``.

Usage: python -m bench.cpu_format [cpu=this|old] [rounds=5] [steps=24] [arms=bfloat16,float32]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.cpu_format_side import OLD_CPU
from bench.figures import spread
from bench.int8 import int8_folder
from bench.lines import HelperProcess
from bench.options import read_options, run_as_command, whole_number
from engine import config
from engine.core import UserError
from engine.inference import find_weights

ROOT = Path(__file__).resolve().parents[1]
DEFAULTS = {
    "cpu": "this",
    "rounds": "5",
    "steps": "24",
    "arms": "bfloat16,float32",
}
CPUS: Mapping[str, Mapping[str, str]] = {
    "this": {},
    "old": {OLD_CPU: "1", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"},
}
WIDTHS = (8, 32)
CLOCKS = ("cpu", "wall")


def side(arm: str, *, folders: Mapping[str, Path], environment: Mapping[str, str]) -> HelperProcess:
    """Start the engine of an arm, or the kernels."""
    kind, _, dtype = arm.rpartition("-")
    compiled = kind == "compiled"
    folder = folders["int8" if kind == "int8" else "plain"]
    options = {"enforce_eager": "false"} if compiled else {}
    more = {"BROOD_BENCH_COMPILE": "1", "VLLM_USE_AOT_COMPILE": "0"} if compiled else {}
    serves = "kernels" if arm == "kernels" else "engine"
    command = [sys.executable, "-m", "bench.cpu_format_side", serves]
    return HelperProcess(
        [*command, str(folder), dtype, json.dumps(options)],
        environment={**environment, **more},
        cwd=ROOT,
    )


def decode(
    arms: Sequence[str], *, environment: Mapping[str, str], rounds: int, steps: int
) -> dict[str, Any]:
    """Return milliseconds a step, ratios to the first arm's, and those that a start would see."""
    every = [f"{arm} {clock} k{k}" for arm in arms for clock in CLOCKS for k in WIDTHS]
    found: dict[str, list[float]] = {name: [] for name in every}
    predicted: dict[str, list[float]] = {f"k{k}": [] for k in WIDTHS}
    starts: list[float] = []
    with ExitStack() as stack, tempfile.TemporaryDirectory() as scratch:
        plain = find_weights(config.resolve([]).model)
        folders = {"plain": plain}
        if any(arm.startswith("int8") for arm in arms):
            folders["int8"] = int8_folder(plain, Path(scratch, "int8"))
        sides = {
            arm: stack.enter_context(side(arm, folders=folders, environment=environment))
            for arm in (*arms, "kernels")
        }
        for arm in arms:  # the first call of each, which may compile
            for k in WIDTHS:
                sides[arm].ask(k=k, count=4)
        for turn in range(rounds):
            for k in WIDTHS:
                for arm in [*arms[turn % len(arms) :], *arms[: turn % len(arms)]]:
                    for clock, seconds in sides[arm].ask(k=k, count=steps).items():
                        found[f"{arm} {clock} k{k}"].append(1e3 * statistics.median(seconds))
            measured = sides["kernels"].ask()
            starts.append(measured["seconds"])
            for k in WIDTHS:
                times = {name: by[str(k)] for name, by in measured["times"].items()}
                medians = {name: statistics.median(each) for name, each in times.items()}
                predicted[f"k{k}"].append(medians["float32"] / medians["bfloat16"])
            latest = {name: round(values[-1], 1) for name, values in found.items()}
            sys.stdout.write(f"round {turn}: {latest}, {predicted}\n")
            sys.stdout.flush()
    return {
        "milliseconds_a_step": {name: spread(values, digits=1) for name, values in found.items()},
        f"speed_over_{arms[0]}": {
            name: spread(ratios(found[f"{arms[0]} {clock} k{k}"], found[name]))
            for arm in arms[1:]
            for clock in CLOCKS
            for k in WIDTHS
            for name in [f"{arm} {clock} k{k}"]
        },
        "predicted_speed_of_bfloat16_over_float32": {
            k: spread(values) for k, values in predicted.items()
        },
        "start_seconds": spread(starts, digits=1),
    }


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Return the ratio of each pair."""
    return [one / other for one, other in zip(above, below, strict=True)]


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    if options["cpu"] not in CPUS:
        raise UserError(f"cpu={options['cpu']}: there are {', '.join(CPUS)}")
    environment = CPUS[options["cpu"]]
    result: dict[str, Any] = {"options": options}
    rounds, steps = whole_number(options, "rounds"), whole_number(options, "steps")
    result |= decode(
        options["arms"].split(","), environment=environment, rounds=rounds, steps=steps
    )
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    run_as_command(main)

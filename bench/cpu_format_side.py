"""One side of ``bench.cpu_format``, in a process of its own: an engine, its kernels, or a run.

Usage, by ``bench.cpu_format``, with the environment that it sets:

    python -m bench.cpu_format_side engine ARM    steps of a whole engine, asked for line by line
    python -m bench.cpu_format_side kernels       what a start measures, likewise
    python cpu_format_side.py run KEY=VALUE...    ``engine.run`` of the current folder

With ``BROOD_BENCH_OLD_CPU=1`` vLLM and torch are told that the CPU has neither AVX512_BF16 nor AMX.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any

OLD_CPU = "BROOD_BENCH_OLD_CPU"
"""Environment variable: stand in for a CPU with AVX512_VNNI and nothing newer."""
_PROMPT_TOKENS = 420  # about the default configuration's for ``signal``


def set_up() -> None:
    """Prepare this process as a run does, on one thread; hide the newer instructions if told."""
    from engine.inference import prepare

    prepare(threads=1, kv_cache_gb=1)
    if os.environ.get("BROOD_BENCH_COMPILE"):
        del os.environ["TORCHDYNAMO_DISABLE"]
    import torch

    if os.environ.get(OLD_CPU):
        # vLLM chooses its library and its kernels by these. oneDNN, which asks the CPU itself, is
        # told by ONEDNN_MAX_CPU_ISA.
        for name in ("avx512_bf16", "amx_tile", "amx_fp16"):
            setattr(torch.cpu, f"_is_{name}_supported", lambda: False)


class Engine:
    """An engine with the embedded model, or with weights made of it."""

    def __init__(self, folder: str, dtype: str, options: dict[str, Any]) -> None:
        from engine import config
        from engine.inference import LanguageModel

        arguments = [f"model.path={folder}", "model.max_model_len=1024", f"model.dtype={dtype}"]
        given = [f"model.engine.{key}={value}" for key, value in options.items()]
        settings = config.resolve([*arguments, *given]).model
        self._model = LanguageModel(settings=settings, folder=folder, seed=0)
        text = "The weights of the window are scaled and the filtered signal is returned. " * 60
        self._prompt = self._model.encode(text)[:_PROMPT_TOKENS]
        self._endless = tuple(self._model.encode("<|im_end|><|endoftext|>"))
        self._seed = 0

    def steps(self, *, k: int, count: int) -> dict[str, list[float]]:
        """Return the CPU and wall seconds of decoding steps with K children."""
        from engine.inference import Sampling

        self._seed += 1
        sampling = [
            Sampling(
                temperature=0.8,
                seed=1000 * self._seed + index,
                stop=(),
                max_tokens=count + 2,
                banned=self._endless,
            )
            for index in range(k)
        ]
        fan = self._model.fanout(token_ids=self._prompt, sampling=sampling)
        cpu, wall = [], []
        while fan.indices:
            began = time.process_time(), time.perf_counter()
            self._model.step()
            cpu.append(time.process_time() - began[0])
            wall.append(time.perf_counter() - began[1])
            fan.take()
        return {"cpu": cpu[2:], "wall": wall[2:]}  # the prompt is computed in the first


def kernel_times(folder: str) -> dict[str, dict[int, list[float]]]:
    """Return what a start would measure."""
    from engine.inference.linear_speed import linear_times
    from engine.inference.number_format import FORMATS

    times = linear_times(Path(folder), formats=FORMATS, most_seconds=2.0)
    return {name: {k: list(each) for k, each in by_rows.items()} for name, by_rows in times.items()}


def serve(kind: str, folder: str, dtype: str, options: str) -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    set_up()
    engine = Engine(folder, dtype, json.loads(options)) if kind == "engine" else None
    if engine is None:
        import vllm.model_executor.layers.utils  # noqa: F401 (a start has it imported anyway)
    for line in sys.stdin:
        request = json.loads(line)
        answer: Any
        if engine is None:
            began = time.perf_counter()
            answer = {"times": kernel_times(folder), "seconds": 0.0}
            answer["seconds"] = time.perf_counter() - began
        else:
            answer = engine.steps(**request)
        print(json.dumps(answer), file=answers, flush=True)


def main(arguments: list[str]) -> None:
    """Serve, or run; see the module."""
    kind, *rest = arguments
    if kind == "run":
        sys.path[0] = str(Path.cwd())
        set_up()
        sys.argv = ["engine.run", *rest]
        runpy.run_module("engine.run", run_name="__main__", alter_sys=True)
    else:
        serve(kind, *rest)


if __name__ == "__main__":
    main(sys.argv[1:])

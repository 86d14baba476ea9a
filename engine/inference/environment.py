"""What has to be set before vLLM is imported, in one place.

Covers: environment variables that vLLM, OpenMP and the hub client read once, a repair that lets
numba be imported before the engine, and silencing what says nothing about a run. Does not cover
vLLM's engine arguments: ``llm.py``.
"""

import logging
import os
import warnings
from importlib import metadata

NO_TELEMETRY = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "LMCACHE_TRACK_USAGE": "false",
    "LMCACHE_DISABLE_BANNER": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


def prepare(*, threads: int | None, kv_cache_gb: int) -> None:
    """Set this process up for vLLM in process; call once, before anything imports torch.

    Args:
        threads: OpenMP threads of the model; None for every core that this process may use, or
            one beside a GPU.
        kv_cache_gb: GiB of KV cache on a CPU.
    """
    available = len(os.sched_getaffinity(0))
    # More than one stay on beside a GPU, where they only spin between the steps.
    wanted = threads or (available if is_cpu_build() else 1)
    os.environ.update(
        {
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            **NO_TELEMETRY,
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": str(min(wanted, available)),
            # Threads that spin between two kernels take the cores from the evaluators.
            "OMP_WAIT_POLICY": "PASSIVE",
            "TOKENIZERS_PARALLELISM": "false",
            # Read when tqdm is imported; a run has a display of its own.
            "TQDM_DISABLE": "1",
        }
    )
    if is_cpu_build():
        os.environ["VLLM_CPU_KVCACHE_SPACE"] = str(kv_cache_gb)
        # The CPU runs in eager mode; compiling helpers on first use stalls a run for seconds.
        os.environ["TORCHDYNAMO_DISABLE"] = "1"
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    # What it logs as errors here is what kv_connector.py says in one warning.
    os.environ.setdefault("LMCACHE_LOG_LEVEL", "CRITICAL")
    _let_vllm_scan_llvmlite()
    _silence()


def is_cpu_build() -> bool:
    """Whether the installed vLLM is the one for CPUs, without importing it."""
    try:
        metadata.version("vllm-cpu")
    except metadata.PackageNotFoundError:
        return False
    return True


def _silence() -> None:
    """Keep messages off the terminal that say nothing about a run."""
    # vLLM's scan (see below) also touches a deprecated name of torch.
    warnings.filterwarnings(
        "ignore", category=FutureWarning, module=r"vllm\.triton_utils\.dispatcher"
    )
    # That Triton has no backend for CPUs, said before vLLM sets its own level.
    logging.getLogger("vllm.triton_utils.importing").setLevel(logging.ERROR)


def _let_vllm_scan_llvmlite() -> None:
    """Let vLLM scan llvmlite's lazy library object without an error.

    Where Triton has no driver, vLLM 0.32 asks every object of every loaded module for ``__dict__``
    (vllm/triton_utils/dispatcher.py). llvmlite's lazy library answers any name with a symbol
    look-up, and fails for this one unless the name is there.
    """
    from llvmlite.binding import ffi

    from engine.inference import compat

    compat.check("llvmlite")
    ffi.lib._fntab["__dict__"] = {}

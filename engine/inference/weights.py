"""Which folder of weights a run's model stands for, without any network.

Covers: the embedded model, a folder, and a model of the hub that lies in the hub's cache. Does not
cover downloading: the engine makes no connection while it runs.
"""

from __future__ import annotations

from pathlib import Path

from engine.core import UserError
from engine.inference.embedded import embedded_model
from engine.settings import ModelSettings


def find_weights(settings: ModelSettings) -> Path:
    """Return the folder with the model's weights.

    Raises:
        UserError: the model is not on this machine; the message names it and what to do.
    """
    if settings.path is None:
        return embedded_model(Path(settings.cache_dir))
    folder = _expanded(settings.path)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise UserError(
                f"model folder {folder} has no config.json; give model.path a folder with weights "
                "in Hugging Face's layout"
            )
        return folder
    if (
        folder.is_absolute()
        or settings.path.startswith((".", "~"))
        or settings.path.count("/") != 1
    ):
        raise UserError(
            f"model path {settings.path!r} does not exist; give model.path a folder with weights "
            "in Hugging Face's layout, or a hub id such as Qwen/Qwen3.5-27B-FP8"
        )
    return _in_hub_cache(settings.path)


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:  # `~somebody` who has no home here
        raise UserError(f"model path {path!r} can't be resolved: {error}") from error


def _in_hub_cache(model_id: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model_id, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError) as error:
        raise UserError(
            f"model {model_id!r} is not on this machine, and a run makes no connection; download "
            f"it first (`hf download {model_id}`), or give model.path=DIR, or use model=smollm2"
        ) from error

"""The model of a run: the only place that knows there is more than one kind.

Covers: what a model needs from early on (its weights, an LMCache server), and loading it. Does not
cover the models: ``engine.inference`` (vLLM) and ``engine.mutation`` (none at all).
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.embedding import Embedder, NGramEmbedder
from engine.inference import (
    Decoder,
    DecoderEmbedder,
    HiddenStatesModel,
    KVServer,
    LanguageModel,
    Model,
    ModelEmbedder,
    chunk_tokens,
    find_weights,
    is_cpu_build,
    kv_server,
    kv_transfer,
)
from engine.mutation import MutationModel
from engine.settings import RunSettings

_log = logging.getLogger("brood")


@contextmanager
def model_loader(settings: RunSettings) -> Iterator[Callable[[], Model]]:
    """Hold what the run's model needs, and yield what loads it; who loads it closes it.

    Raises:
        UserError: its weights are not on this machine.
    """
    if settings.model.kind == "mutation":
        yield functools.partial(MutationModel, settings.model)
        return
    weights = find_weights(settings.model)
    with _kv_server(settings, weights) as server:
        yield functools.partial(_load, settings, weights, server)


def make_embedder(kind: str, model: Model, *, decoder: Decoder | None = None) -> Embedder:
    """Return what makes vectors of programs.

    Args:
        kind: ``ngrams`` or ``model``.
        model: the run's.
        decoder: that steps the model, if one does.
    """
    if kind == "ngrams":
        return NGramEmbedder()
    assert isinstance(model, HiddenStatesModel)  # ``engine.bounds`` lets no other one through
    embedder = ModelEmbedder(model)
    return embedder if decoder is None else DecoderEmbedder(embedder, decoder)


@contextmanager
def _kv_server(settings: RunSettings, weights: Path) -> Iterator[KVServer | None]:
    """Hold the run's LMCache server, if it is to have one; it outlives the model."""
    if settings.cache.kind == "none":
        yield None
        return
    tokens = chunk_tokens(settings=settings.model, folder=weights)
    with kv_server(settings.cache, chunk_tokens=tokens, on_gpu=not is_cpu_build()) as server:
        yield server


def _load(settings: RunSettings, weights: Path, server: KVServer | None) -> LanguageModel:
    _log.info("loading %s", settings.model.name)
    return LanguageModel(
        settings=settings.model,
        folder=weights,
        seed=settings.seed,
        kv_transfer=kv_transfer(server, weights=weights),
    )

"""The model of a run; only this module knows that there are several kinds.

Covers: what a model needs from early on (its weights, an LMCache server), and loading it. Does not
cover the models: ``engine.inference`` (vLLM) and ``engine.mutation`` (none at all).
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from engine.inference import (
    KVServer,
    LanguageModel,
    Model,
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
def model_loader(settings: RunSettings, *, syntax: Executor) -> Iterator[Callable[[], Model]]:
    """Hold what the run's model needs, and yield what loads it; who loads it closes it.

    Args:
        settings: the run's.
        syntax: processes in which ``model=mutation`` mutates programs.

    Raises:
        UserError: its weights are not on this machine.
    """
    if settings.model.kind == "mutation":
        yield functools.partial(MutationModel, settings.model, syntax=syntax)
        return
    weights = find_weights(settings.model)
    server: AbstractContextManager[KVServer | None] = nullcontext()
    if settings.cache.kind == "lmcache":
        tokens = chunk_tokens(settings=settings.model, folder=weights)
        server = kv_server(settings.cache, chunk_tokens=tokens, on_gpu=not is_cpu_build())
    with server as started:
        yield functools.partial(_load, settings, weights, started)


def _load(settings: RunSettings, weights: Path, server: KVServer | None) -> LanguageModel:
    _log.info("loading %s", settings.model.name)
    return LanguageModel(
        settings=settings.model,
        folder=weights,
        seed=settings.seed,
        kv_transfer=kv_transfer(server, weights=weights),
    )

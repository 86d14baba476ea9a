"""The LMCache server of a machine, for all workers there: held by a process of its own.

So no worker takes the others' KV along when it dies, and a model is kept once in a machine's memory
however many workers have it.
"""

from contextlib import ExitStack
from dataclasses import replace

from engine.inference import (
    KVServer,
    chunk_tokens,
    find_weights,
    is_cpu_build,
    kv_server,
    kv_transfer,
    prepare,
)
from engine.session import log_to_terminal
from engine.settings import CacheSettings, ModelSettings


class NodeCache:
    """See the module. One thread uses it, with which the server dies."""

    def __init__(self, cache: CacheSettings, model: ModelSettings) -> None:
        """Start nothing yet.

        Args:
            cache: of the kind ``lmcache``, with no server.
            model: whose KV is kept.
        """
        log_to_terminal()
        prepare(threads=1, kv_cache_gb=model.kv_cache_gb)
        self._cache = cache
        self._model = model
        self._resources = ExitStack()
        self._server: KVServer | None = None
        self._found = cache

    def settings(self) -> CacheSettings:
        """Return what a worker that starts here is told; start the server if none runs.

        Returns:
            Settings that name the server; of the kind ``none`` if it can't be had.

        Raises:
            UserError: the model, or the installed LMCache, is one that can't be used so.
        """
        if self._server is None or not self._server.is_running:
            self.close()
            self._found = self._start()
        return self._found

    def close(self) -> None:
        """End the server."""
        self._server = None
        self._resources.close()

    def _start(self) -> CacheSettings:
        weights = find_weights(self._model)
        tokens = chunk_tokens(settings=self._model, folder=weights)
        on_gpu = not is_cpu_build()
        self._server = self._resources.enter_context(
            kv_server(self._cache, chunk_tokens=tokens, on_gpu=on_gpu)
        )
        transfer = kv_transfer(self._server, weights=weights)
        if transfer is None:
            return replace(self._cache, kind="none")
        return replace(
            self._cache,
            server=f"127.0.0.1:{transfer.port}",
            # On a CPU it writes into its own memory only, and the others may go on with it.
            server_pid=transfer.pid if on_gpu else None,
            remote=None,
        )

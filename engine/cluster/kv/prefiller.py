"""A prefiller: a process with a model that computes prompts for the workers of its machine.

What it computes then lies in the machine's LMCache server, where a worker's engine finds it.
"""

import os
import tempfile
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from engine import config
from engine.cluster.worker_report import WorkerReport
from engine.inference import LanguageModel, prepare
from engine.parts import model_loader
from engine.session import log_to_terminal
from engine.settings import CacheSettings, RunSettings


class Prefiller:
    """See the module. Its methods may be called from any thread; one of its own has the model."""

    def __init__(self, settings: str) -> None:
        """Load nothing yet.

        Args:
            settings: of the whole run, as YAML.
        """
        log_to_terminal()
        with tempfile.TemporaryDirectory(prefix="brood-prefiller-") as folder:
            path = Path(folder) / "settings.yaml"
            path.write_text(settings)
            self._settings = config.load(path)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="prefiller")
        self._resources = ExitStack()
        self._loaded: Future[LanguageModel] = Future()
        self._has_stored = False
        self._error = ""

    def start(self, cores: Collection[int], cache: CacheSettings | None) -> None:
        """Begin to load the model.

        Args:
            cores: of the machine, to keep to.
            cache: which LMCache server to use; None for what the run's settings say.
        """
        os.sched_setaffinity(0, cores)
        settings = self._settings if cache is None else replace(self._settings, cache=cache)
        self._thread.submit(self._load, settings)

    def ready(self) -> None:
        """Wait until the model is there.

        Raises:
            UserError: it can't be.
        """
        self._loaded.result()

    def prefill(self, token_ids: Sequence[int]) -> None:
        """Compute a prompt; its KV is in the machine's LMCache server then.

        Raises:
            RuntimeError: it is not.
        """
        self._thread.submit(self._prefill, token_ids).result()

    def report(self) -> WorkerReport:
        """Return how it stands: as a worker that has no island."""
        return WorkerReport(islands={}, lost={}, candidates=0, seconds=0.0, error=self._error)

    def close(self) -> None:
        """Close the model, and end the thread."""
        self._thread.submit(self._resources.close).result()
        self._thread.shutdown()

    def _load(self, settings: RunSettings) -> None:
        try:
            prepare(threads=settings.model.threads, kv_cache_gb=settings.model.kv_cache_gb)
            load = self._resources.enter_context(model_loader(settings, syntax=self._thread))
            model = load()
            assert isinstance(model, LanguageModel)  # any other has no cache=lmcache
            self._resources.callback(model.close)
            self._loaded.set_result(model)
        except BaseException as error:  # raised again by `ready`
            self._loaded.set_exception(error)

    def _prefill(self, token_ids: Sequence[int]) -> None:
        if self._loaded.result().prefill(token_ids):
            self._has_stored = True
            return
        why = "the prefiller's LMCache server is gone"
        if self._has_stored:  # else another one would have none either
            self._error = why
        raise RuntimeError(why)

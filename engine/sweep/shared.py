"""What the runs of one process share: a loaded model, and which runs can."""

import os
from collections.abc import Callable
from contextlib import ExitStack, closing

from engine.inference import Model
from engine.parts import model_loader, settled
from engine.settings import ModelSettings, RunSettings
from engine.syntax.workers import SyntaxWorkers


def shared(settings: RunSettings) -> str | None:
    """Return what the runs of one process have in common; None for a run with a process alone."""
    is_plain = settings.learning.method == "none" and settings.cache.kind == "none"
    if not is_plain or settings.advisor.enabled:
        return None
    return repr((settings.model, settings.evaluation.workers))


class SharedModel:
    """The model of all runs of this process; loaded when the first one asks for it.

    One that began with another number format, on another machine for instance, has it loaded anew.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._model: Model | None = None
        self._loaded: ModelSettings | None = None

    def loader(self, settings: RunSettings) -> Callable[[], Model] | None:
        """Return what a run loads its model with: `Run.start`, or `Run.resume` with its settings.

        Mutations need processes of their run, and nothing is loaded for them.
        """
        return None if settings.model.kind == "mutation" else lambda: self._get(settings)

    def _get(self, settings: RunSettings) -> Model:
        wanted = settled(settings).model
        if self._model is None or wanted != self._loaded:
            self.close()
            cores = os.sched_getaffinity(0)
            syntax = self._stack.enter_context(SyntaxWorkers(count=1, cores=cores))
            load = self._stack.enter_context(model_loader(settings, syntax=syntax))
            self._model, self._loaded = self._stack.enter_context(closing(load())), wanted
        self._model.forget()
        return self._model

    def close(self) -> None:
        """Free the model."""
        self._model = None
        self._stack.close()

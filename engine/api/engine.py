"""A model in this process, for those who want its fan-out and no search.

    with Engine("smollm2") as engine:
        for answer in engine.fanout("Once upon a time", k=16, max_tokens=40):
            print(answer.index, answer.text)

One thread uses an engine at a time. Does not cover searches (`engine.Run`).
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, Self

from engine import config
from engine.api.fan import Fan, siblings
from engine.api.keywords import arguments_of, model_arguments
from engine.inference import Model, Sampling, prepare
from engine.parts import model_loader
from engine.syntax.workers import SyntaxWorkers


class Engine:
    """A model, loaded for the length of a ``with`` block."""

    def __init__(self, model: str | Path = "smollm2", **settings: Any) -> None:
        """Check the settings; nothing is loaded yet.

        Args:
            model: a preset's name, or the folder or hub id of weights.
            settings: as in `Run.of`; those of ``model`` and ``cache`` matter, and ``seed``.

        Raises:
            UserError: a key or value is wrong.
        """
        self._settings = config.resolve([*model_arguments(model), *arguments_of(settings)])
        self._open = ExitStack()
        self._model: Model | None = None

    def __enter__(self) -> Self:
        """Load the model.

        Raises:
            UserError: its weights are not on this machine, or it can't be loaded.
        """
        settings, cores = self._settings, os.sched_getaffinity(0)
        prepare(threads=settings.model.threads, kv_cache_gb=settings.model.kv_cache_gb)
        with ExitStack() as stack:
            syntax = stack.enter_context(SyntaxWorkers(count=len(cores), cores=cores))
            load = stack.enter_context(model_loader(settings, syntax=syntax))
            self._model = stack.enter_context(closing(load()))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._model = None
        self._open.close()

    @property
    def model(self) -> Model:
        """The model itself.

        Raises:
            RuntimeError: it is not loaded.
        """
        if self._model is None:
            raise RuntimeError("the engine is not loaded; use it within `with Engine(...) as ...`")
        return self._model

    def chat(self, message: str, *, system: str = "You are a helpful assistant.") -> str:
        """Return the prompt that asks a chat model for the answer to one message.

        Raises:
            UserError: the model takes no messages.
        """
        frame = self.model.chat_frame(system=system)
        return f"{frame.opening}{message}{frame.closing}"

    def fanout(
        self,
        prompt: str,
        *,
        k: int = 8,
        temperature: float = 1.0,
        max_tokens: int = 256,
        seed: int = 0,
        stop: Sequence[str] = (),
    ) -> Fan:
        """Ask for K answers to one prompt; the parameters are those of `siblings`."""
        sampling = siblings(k, temperature=temperature, max_tokens=max_tokens, seed=seed, stop=stop)
        return fanout(prompt, sampling, engine=self)


def fanout(prompt: str | Sequence[int], sampling: Sequence[Sampling], *, engine: Engine) -> Fan:
    """Ask for one answer for each entry of ``sampling``, all to one prompt.

    All requests enter the same step of the model, so the prompt is computed once. This is the
    primitive that a search is made of, one call for each parent.

    Args:
        prompt: its text, or its tokens.
        sampling: of each answer; `siblings` makes equal ones.
        engine: that is loaded.

    Raises:
        ValueError: prompt and longest answer exceed the model's context, or nothing is asked for.
    """
    if not sampling:
        raise ValueError("sampling is empty; give one entry for each answer")
    model = engine.model
    tokens = model.encode(prompt) if isinstance(prompt, str) else list(prompt)
    return Fan(partial(model.fanout, token_ids=tokens, sampling=sampling), model.step)

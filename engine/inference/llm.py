"""vLLM's engine in this process: K children from one prompt.

Covers: starting the engine on a CPU or a GPU, and again, running its steps, the model's tokenizer,
and how loaded it is. Does not cover the children of a prompt (``fanout.py``), what stands in a
prompt (``engine.prompts``), what becomes of a child, or of an engine that fails (``recovery.py``).

The engine has no locks: one thread adds requests, steps and aborts. The tokenizer is a copy of the
engine's, so another thread may compose prompts meanwhile.
"""

import copy
import gc
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from engine.core import ChatFrame
from engine.inference import compat
from engine.inference.adapters import Adapters
from engine.inference.block_hashes import hash_block_size, share_hashes
from engine.inference.chat_template import chat_frame
from engine.inference.engine_options import engine_args, told_what_to_change
from engine.inference.environment import is_cpu_build
from engine.inference.fanout import FanOut, Truncation, truncation
from engine.inference.kv_server import KVTransfer
from engine.inference.load_counter import load_counter
from engine.inference.logprobs import gather_on_cpu
from engine.inference.model import EngineLoad, ModelLost, Sampling
from engine.inference.number_format import in_its_format
from engine.inference.streams import EngineStream
from engine.inference.watchdog import Watchdog
from engine.settings import LearningSettings, ModelSettings

_FREE_SECONDS = 10.0  # in which blocks are freed that no request holds any more
_log = logging.getLogger(__name__)


class LanguageModel:
    """Owns the one `LLMEngine` of this process."""

    def __init__(
        self,
        *,
        settings: ModelSettings,
        folder: str | Path,
        seed: int,
        kv_transfer: KVTransfer | None = None,
        learning: LearningSettings | None = None,
    ) -> None:
        """Load the model and its tokenizer.

        Args:
            settings: limits of the engine.
            folder: the weights, in Hugging Face's layout.
            seed: of the engine; each child has its own seed besides.
            kv_transfer: where KV is kept outside the engine; None for nowhere. If that fails,
                now or later, the engine goes on without.
            learning: whether there are adapters, and log-probabilities; None, like the method
                ``none``, for neither.

        Raises:
            UserError: the model can't be loaded, or the installed vLLM or LMCache is one that the
                engine can't use; the message names it and what to do.
        """
        self._learning = None if learning is None or learning.method == "none" else learning
        self._settings = in_its_format(settings, folder=Path(folder))
        self._folder, self._seed, self._kv_transfer = Path(folder), seed, kv_transfer
        self._counter = load_counter()
        self._watchdog = Watchdog(settings.step_seconds)
        self._calls = 0
        self._start()
        self._truncation = Truncation() if self._learning else truncation(settings, self._folder)
        self._thinks = settings.thinking
        # A tokenizer can't be used by two threads at once, and the engine's step uses its own.
        self._tokenizer = copy.deepcopy(self._engine.get_tokenizer())
        self.max_model_len = settings.max_model_len
        self.block_size = hash_block_size(self._engine)

    def _start(self) -> None:
        with told_what_to_change(self._settings, self._folder):
            args = engine_args(
                settings=self._settings,
                folder=str(self._folder),
                seed=self._seed,
                learning=self._learning,
            )
            args.kv_transfer_config = _kv_transfer_config(self._kv_transfer)
            self._engine: Any = _load(args, self._counter)
        self._stream = EngineStream(self._engine)
        share_hashes(self._engine)
        self._adapters: Adapters | None = None
        if self._learning is not None:
            self._adapters = Adapters(self._engine, learning=self._learning, folder=self._folder)
            if is_cpu_build():
                gather_on_cpu(self._engine)
        self._fans: list[FanOut] = []

    def reload(self, *, most_at_once: int | None = None) -> None:
        """Load the engine again: without requests, adapters or a prefix cache, in this thread.

        The children that were under way are lost.

        Args:
            most_at_once: requests that it is to run at once from now on; None for as many as now.

        Raises:
            UserError: it can't be loaded.
        """
        if most_at_once is not None:
            self._settings = replace(self._settings, max_num_seqs=most_at_once)
        if self._engine is not None:  # else it could not be loaded the last time
            if not self._has_server:
                self._kv_transfer = None
            self._engine.engine_core.shutdown()
        # Nothing may hold the old engine: its memory is the new one's.
        self._engine, self._adapters, self._fans = None, None, []
        _forget_engine()
        self._start()

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        """See `engine.prompts.Tokenizer`."""
        ids = self._tokenizer.encode(text, add_special_tokens=False)
        if plain and not self._marks.isdisjoint(ids):
            ids = self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        return list(ids)

    @cached_property
    def _marks(self) -> frozenset[int]:
        """Tokens that the tokenizer makes of marks of turns, and that stand for no characters."""
        added = self._tokenizer.added_tokens_decoder
        return frozenset(number for number, token in added.items() if token.special)

    def chat_frame(self, *, system: str) -> ChatFrame:
        """Return what the model's chat template puts round the messages of a conversation.

        Raises:
            UserError: see `engine.inference.chat_template`.
        """
        return chat_frame(self._tokenizer, system=system, thinks=self._thinks)

    def adopt(self, version: int, folder: Path) -> None:
        """Load a version of the adapter, in peft's format, between two steps.

        What is under way ends on the version that it began with. The folder has to stay as long as
        the version may be asked for.

        Raises:
            ValueError: it can't be loaded, or nothing learns.
            RuntimeError: the device failed.
        """
        if self._adapters is None:
            raise ValueError("the model was loaded without learning, so it takes no adapter")
        self._stream.enter()
        self._adapters.adopt(version, folder)

    def fanout(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int = 0
    ) -> FanOut:
        """Ask for one child per entry of ``sampling``, all from one prompt.

        All requests enter the same engine step, so the prompt is prefilled once.

        Args:
            token_ids: the prompt.
            sampling: of each child.
            adapter: version of the adapter; 0 for the model itself.

        Raises:
            ValueError: the prompt and the longest completion exceed ``max_model_len``, or the
                version was not adopted.
        """
        longest = len(token_ids) + max(each.max_tokens for each in sampling)
        if longest > self.max_model_len:
            raise ValueError(f"{longest} tokens exceed the model's {self.max_model_len}")
        if adapter and self._adapters is None:
            raise ValueError("the model was loaded without learning, so it has no adapter")
        named, salt = self._adapters.of(adapter) if self._adapters else (None, None)
        self._calls += 1
        self._stream.enter()
        fan = FanOut(
            engine=self._engine,
            step=self.step,
            call=self._calls,
            token_ids=list(token_ids),
            sampling=sampling,
            truncation=self._truncation,
            adapter=named,
            salt=salt,
            learns=self._adapters is not None,
        )
        self._fans.append(fan)
        return fan

    def step(self) -> None:
        """Run the engine for one step; each fan-out takes in the output of its children.

        The step's wall seconds are shared out evenly among the children in it.
        """
        self._stream.enter()
        requests = self._engine.get_num_unfinished_requests()
        began = time.perf_counter()
        with self._watchdog.step():
            outputs = {output.request_id: output for output in self._engine.step()}
        seconds = time.perf_counter() - began
        self._fans = [fan for fan in self._fans if fan.indices]
        for fan in self._fans:
            fan.note(outputs, seconds=seconds / requests)

    def prefill(self, token_ids: Sequence[int]) -> bool:
        """Compute a prompt; nothing else may be under way.

        Returns:
            Whether its KV is kept outside the engine now.
        """
        one = Sampling(temperature=0.0, seed=0, stop=(), max_tokens=1)
        fan = self.fanout(token_ids=token_ids, sampling=[one])
        while fan.indices:
            self.step()
        fan.close()
        scheduler = self._engine.engine_core.engine_core.scheduler
        deadline = time.monotonic() + _FREE_SECONDS
        while scheduler.has_requests() and time.monotonic() < deadline:  # it is being stored
            self._engine.step()
        return self._has_server and not scheduler.has_requests()

    @property
    def _has_server(self) -> bool:
        """Whether KV is kept outside the engine, and has not been given up."""
        connector = self._engine.engine_core.engine_core.scheduler.connector
        return connector is not None and bool(connector.has_server)

    @property
    def most_at_once(self) -> int:
        """Requests that the engine runs at once; more wait."""
        return int(self._engine.vllm_config.scheduler_config.max_num_seqs)

    def load(self) -> EngineLoad:
        """Return how loaded the engine was in its last step.

        Raises:
            ModelLost: the step under way has lasted longer than ``model.step_seconds``.
        """
        if self._watchdog.hangs():
            raise ModelLost(
                f"a step of the engine has lasted longer than {self._settings.step_seconds:g} s "
                "(model.step_seconds)"
            )
        load: EngineLoad = self._counter.load
        return load

    def forget(self) -> None:
        """Empty the prefix cache, so that the next call starts cold.

        Blocks may be held a little longer than the last request: for a step that was begun ahead,
        and until a cache outside the engine has stored them.

        Raises:
            RuntimeError: a request still holds some of it.
        """
        deadline = time.monotonic() + _FREE_SECONDS
        while not self._engine.reset_prefix_cache():
            if self._engine.get_num_unfinished_requests() or time.monotonic() > deadline:
                raise RuntimeError("the prefix cache is in use")
            self._stream.enter()
            self._engine.step()

    def close(self) -> None:
        """Shut the engine down and free what it holds, but for one that is in a step.

        The step may hang; or a second Ctrl-C does not wait for it, and vLLM must not lose its state
        under it. The end of the process frees what is left.
        """
        if self._engine is None or self._watchdog.is_in_step:
            return
        self._engine.engine_core.shutdown()


def _load(args: Any, counter: Any) -> Any:
    """Return the engine; without LMCache if its server is gone by the time it is needed."""
    from vllm.v1.engine.llm_engine import LLMEngine

    try:
        return LLMEngine.from_engine_args(args, stat_loggers=[counter])
    except ConnectionError:
        if args.kv_transfer_config is None:
            raise
        _log.warning("the LMCache server is gone; the engine is loaded again, without it")
    # Out of the handler, so that what was loaded before can be freed.
    _forget_engine()
    args.kv_transfer_config = None
    return LLMEngine.from_engine_args(args, stat_loggers=[counter])


def _forget_engine() -> None:
    """Free what an engine leaves in this process."""
    from vllm.distributed.kv_transfer import ensure_kv_transfer_shutdown

    ensure_kv_transfer_shutdown()
    gc.collect()


def _kv_transfer_config(kv_transfer: KVTransfer | None) -> Any:
    if kv_transfer is None:
        return None
    compat.check("lmcache", "connector")
    from vllm.config import KVTransferConfig

    from engine.inference import kv_connector

    return KVTransferConfig(
        kv_connector=kv_connector.NAME,
        kv_connector_module_path=kv_connector.__name__,
        kv_role="kv_both",
        kv_load_failure_policy="recompute",
        kv_connector_extra_config={
            "lmcache.mp.host": "tcp://127.0.0.1",
            "lmcache.mp.port": kv_transfer.port,
            "lmcache.mp.mq_timeout": kv_connector.START_SECONDS,
            "brood.weights": kv_transfer.weights,
            "brood.pid": kv_transfer.pid,
        },
    )

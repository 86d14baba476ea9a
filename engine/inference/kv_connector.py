"""vLLM's side of the LMCache server: a connector whose server may fail.

Covers: loading and storing KV through LMCache's multi-process connector, keeping models apart,
asking the server only what the engine's own prefix cache can't answer, and going on without a
server that is slow or gone. Does not cover the server: ``kv_server.py``.

A server gets one chance: the first answer that is late or wrong makes the engine go on without it,
for good and with one warning. So an engine is stalled once, by at most two of `ANSWER_SECONDS`,
however the server fails. KV that comes from a disk may take longer: other requests run on, and each
step looks for it for up to 50 ms.
"""

import contextlib
import hashlib
import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import vllm
import zmq
from lmcache.integration.vllm.lmcache_mp_connector import LMCacheMPConnector
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorRole
from vllm.v1.request import RequestStatus

from engine.inference.kv_instances import new_instance

NAME = "KVConnector"
"""Name of the class below, as vLLM's configuration wants it."""

START_SECONDS = 10.0
"""How long the server may take to answer while the engine starts."""

ANSWER_SECONDS = 1.0
"""How long an answer of the server may take once the engine has started, besides what it moves."""

BYTES_PER_SECOND = 2.5e8
"""How much KV even a slow disk or network gives. A prompt of 8,192 tokens has 0.8 GB of
Qwen3-Coder-30B-A3B's, which may take longer than an answer."""

_POLL_SECONDS = 0.001
_PATIENCE_SECONDS = 0.05  # that the scheduler waits for one answer before it does something else
_MOST_OFFERED = 4096
_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(slots=True)
class ServerHealth:
    """What one engine knows of its server.

    vLLM makes two connectors, for its scheduler and for its worker; in one process they share
    this. LMCache's adapters are made to wait for a server that comes back. A search gains more from
    going on at once, and prompts that are computed again cost it little.

    A server of our own that was given up is killed: if it is only slow, it would otherwise go on
    writing into blocks of a GPU's memory that the engine has given to others.

    Attributes:
        pid: of a server of our own.
        adapters: of LMCache's, which talk to the server.
        given_up: whether the engine goes on without it.
    """

    pid: int | None
    adapters: list[Any] = field(default_factory=list)
    given_up: bool = False

    def reached_by(self, adapter: Any) -> None:
        """Note an adapter of LMCache's that talks to the server, and bound what it waits."""
        adapter._mq_timeout = ANSWER_SECONDS
        # Its heartbeat would find a failure no sooner than the next request does, and would
        # bring a server back that was given up.
        adapter._ensure_heartbeat_started = lambda: None
        self.adapters.append(adapter)

    def give_up(self, reason: object) -> None:
        """Go on without the server from now on."""
        if self.given_up:
            return
        self.given_up = True
        _log.warning("the LMCache server failed (%s); the run goes on without it", reason)
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # another's by now
                os.kill(self.pid, signal.SIGKILL)
        for adapter in self.adapters:
            events = getattr(adapter, "_health_events", None)  # a scheduler's; a worker has one
            for event in [adapter._health_event] if events is None else events.values():
                event.clear()  # LMCache's own way to say that there is no server


_SERVERS: dict[str, ServerHealth] = {}  # of the engines of this process


class KVConnector(LMCacheMPConnector):  # type: ignore[misc]
    """LMCache's connector, for a server that may fail."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        """Connect to the server.

        Raises:
            ConnectionError: it does not answer.
            ValueError: its chunks do not fit the engine's blocks.
        """
        # Else what was not sent yet to a dead server would hold this process back at its end.
        zmq.Context.instance().setsockopt(zmq.LINGER, 0)
        super().__init__(vllm_config, role, kv_cache_config)
        extra = vllm_config.kv_transfer_config.kv_connector_extra_config
        self._server = _SERVERS.setdefault(
            vllm_config.kv_transfer_config.engine_id, ServerHealth(pid=extra["brood.pid"])
        )
        self._token_bytes = token_bytes(kv_cache_config)
        self._is_scheduler = role == KVConnectorRole.SCHEDULER
        adapter = self.scheduler_adapter if self._is_scheduler else self.worker_adapter
        # LMCache would take the weights' path for the model's name: no good for a file's name,
        # and the same for other weights at that path.
        adapter.model_name = _namespace(extra["brood.weights"], vllm_config)
        if self._is_scheduler:
            self._server.reached_by(adapter)
            self._asking: dict[str, tuple[Any, float]] = {}  # a request, since when it is asked for
            self._loading: dict[str, tuple[Any, int]] = {}  # a request, and tokens that it loads
            self._offered: dict[int, None] = {}  # digests of prompts whose chunks were stored
        else:
            adapter.instance_id = new_instance()
            self._load_began = time.monotonic()  # of the last batch
            self._load_tokens = 0

    @property
    def has_server(self) -> bool:
        """Whether the server has not been given up."""
        return not self._server.given_up

    # The worker's side

    def register_kv_caches(self, kv_caches: dict[str, Any]) -> None:
        """Tell the server of the engine's KV.

        Raises:
            ConnectionError: it does not answer.
        """
        super().register_kv_caches(kv_caches)
        self._server.reached_by(self.worker_adapter)
        context = getattr(self.worker_adapter.transfer_ctx, "_engine_driven_context", None)
        if context is not None:  # copies that this process makes itself, on a CPU
            context.mq_timeout = ANSWER_SECONDS

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Load what the scheduler asked for; vLLM recomputes what can't be loaded."""
        self._transfer("RETRIEVE", self.worker_adapter.submit_retrieve_request)

    def wait_for_save(self) -> None:
        """Store what this step computed."""
        self._transfer("STORE", self.worker_adapter.submit_store_request)

    def get_finished(self, finished_req_ids: set[str]) -> Any:
        """Return the requests whose stores and loads have ended, well or not."""
        loads = [future for future, _ in self.worker_adapter.retrieve_futures.values()]
        seconds = ANSWER_SECONDS + self._moved_in(self._load_tokens)
        is_late = time.monotonic() - self._load_began > seconds
        if loads and is_late and not any(load.query() for load in loads):
            self._server.give_up(f"a load took longer than {seconds:.1f} s")
        return super().get_finished(finished_req_ids)

    def shutdown(self) -> None:
        """Take leave of the server, if it is there."""
        if not self._is_scheduler and self._server.given_up:
            context, self.worker_adapter.transfer_ctx = self.worker_adapter.transfer_ctx, None
            if context is not None:
                context.close()
        super().shutdown()

    def _transfer(self, direction: str, submit: Callable[..., None]) -> None:
        every = self._get_connector_metadata().requests
        batch = [each for each in every if each.direction == direction]
        if not batch:
            return
        # An earlier batch may be on its way still.
        waits_for = self._load_tokens if self.worker_adapter.retrieve_futures else 0
        event = self.worker_adapter.create_recorded_event()
        for each in batch:
            began = time.monotonic()
            given = (each.request_id, each.op, event, each.cache_salt, each.request_configs)
            self._tried(partial(submit, *given))
            if time.monotonic() - began >= ANSWER_SECONDS:
                self._server.give_up(f"no answer within {ANSWER_SECONDS:.0f} s")
        if direction == "RETRIEVE":
            self._load_began = time.monotonic()
            self._load_tokens = waits_for + sum(each.op.end - each.op.start for each in batch)

    # The scheduler's side

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        """Return how many tokens the server adds to the ``num_computed_tokens`` that vLLM has.

        Returns:
            The number, None for "ask again in the next step"; and whether they are loaded between
            two steps.
        """
        if not self._server.given_up and request.request_id not in self.request_trackers:
            if self._is_covered(request, num_computed_tokens):
                return 0, False
            if self._has_elder(request, num_computed_tokens):
                return None, True
        _, began = self._asking.setdefault(request.request_id, (request, time.monotonic()))
        matched = self._ask(request, num_computed_tokens)
        # A server that does not answer at all is found by the adapter; this one reads the disk.
        asked = sum(other.num_prompt_tokens for other, _ in self._asking.values())
        is_late = time.monotonic() - began > 2 * ANSWER_SECONDS + self._moved_in(asked)
        if not self.scheduler_adapter.is_healthy or (matched[0] is None and is_late):
            self._server.give_up("a look-up took too long")
            matched = self._ask(request, num_computed_tokens)
        if matched[0] is not None:
            del self._asking[request.request_id]
        return matched

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """Note that ``request`` has its blocks, and that its prompt will be stored."""
        super().update_state_after_alloc(request, blocks, num_external_tokens)
        if num_external_tokens > 0:
            end = self.request_trackers[request.request_id].num_lmcache_hit_tokens
            self._loading[request.request_id] = (request, end)
        self._offered[self._digest(request)] = None
        while len(self._offered) > _MOST_OFFERED:
            del self._offered[next(iter(self._offered))]

    def request_finished(
        self, request: Any, block_ids: list[int]
    ) -> tuple[bool, dict[str, Any] | None]:
        """Forget a request; see vLLM's base class for what is returned."""
        self._asking.pop(request.request_id, None)
        self._loading.pop(request.request_id, None)
        finish = partial(super().request_finished, request, block_ids)
        finished: tuple[bool, dict[str, Any] | None] = self._tried(finish)
        return finished

    def _report_block_allocation_deltas(self, scheduler_output: Any) -> None:
        """Keep LMCache's telemetry of the engine's own blocks off the engine's step."""

    def _tried(self, work: Callable[[], T]) -> T:
        """Do what needs the server; if that fails, give the server up and do it without one.

        LMCache's adapters send nothing then: a look-up finds nothing, a transfer has failed.
        """
        try:
            return work()
        except Exception as error:  # whatever the server answered, or LMCache made of it
            self._server.give_up(error)
            return work()

    def _ask(self, request: Any, computed: int) -> tuple[int | None, bool]:
        """Ask the server, waiting a little for the answer.

        Most answers take a few milliseconds, and a request that has its answer now is prefilled
        in the same step as its siblings.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        ask = partial(super().get_num_new_matched_tokens, request, computed)
        while True:
            matched: tuple[int | None, bool] = self._tried(ask)
            if matched[0] is not None or time.monotonic() >= deadline:
                return matched
            time.sleep(_POLL_SECONDS)

    def _is_covered(self, request: Any, computed: int) -> bool:
        """Whether vLLM's own prefix cache has every chunk that the server could have.

        That is so for all children of a prompt but the first. Then the request is noted as one
        for which LMCache found nothing, and as stored if its prompt was stored before.
        """
        chunk = self.scheduler_adapter.lmcache_tokens_per_chunk
        if computed < request.num_tokens // chunk * chunk:
            return False
        tracker = self._get_or_create_request_tracker(request)
        tracker.num_vllm_hit_tokens = (
            computed // self._hit_alignment_tokens * self._hit_alignment_tokens
        )
        if self._digest(request) in self._offered:
            tracker.num_stored_tokens = request.num_prompt_tokens // chunk * chunk
        return True

    def _has_elder(self, request: Any, computed: int) -> bool:
        """Whether an earlier sibling is asking the server, or loads tokens that vLLM lacks.

        A request with such a sibling waits: afterwards the prefix cache has the tokens. Otherwise
        each sibling would load a copy.
        """
        for name, (other, _) in list(self._loading.items()):
            if other.status != RequestStatus.WAITING_FOR_REMOTE_KVS:
                del self._loading[name]
        asking = [(other, other.num_prompt_tokens) for other, _ in self._asking.values()]
        return any(
            computed < end <= request.num_prompt_tokens
            and request.cache_salt == other.cache_salt
            and request.prompt_token_ids[:end] == other.prompt_token_ids[:end]
            for other, end in (*asking, *self._loading.values())
        )

    def _moved_in(self, tokens: int) -> float:
        """Return the seconds in which the KV of so many tokens has come from a slow disk."""
        return tokens * self._token_bytes / BYTES_PER_SECOND

    def _digest(self, request: Any) -> int:
        chunk = self.scheduler_adapter.lmcache_tokens_per_chunk
        end = request.num_prompt_tokens // chunk * chunk
        return hash((request.cache_salt, tuple(request.prompt_token_ids[:end])))


def token_bytes(config: Any) -> float:
    """Return the bytes of KV, and of layers' state, for a token of a prompt.

    Args:
        config: vLLM's ``KVCacheConfig``.
    """
    total = 0.0
    for group in config.kv_cache_groups:
        spec = group.kv_cache_spec
        # A spec of several layers' specs has the bytes of all of them.
        layers = 1 if hasattr(spec, "kv_cache_specs") else len(group.layer_names)
        total += layers * spec.page_size_bytes / spec.block_size
    return total


def _namespace(weights: str, config: Any) -> str:
    """Return what LMCache's keys have for a model: whatever changes the bytes of a chunk of KV."""
    model, cache = config.model_config, config.cache_config
    facts = (
        vllm.__version__,
        str(model.dtype),
        str(cache.cache_dtype),
        str(model.quantization),
        str(config.device_config.device_type),
        cache.block_size,
        # What else model.engine can change of a model: no weights at all, or another config.json.
        str(config.load_config.load_format),
        repr(sorted(model.hf_overrides.items())) if isinstance(model.hf_overrides, dict) else "",
    )
    return f"{weights}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}"

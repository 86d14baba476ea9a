"""Workers as Ray actors. The only module that imports Ray.

Covers: starting or joining a Ray cluster, and calls to workers that may be dead, slow or cut off.
Does not cover which workers there are to be (``fleet.py``), or which islands they get
(``driver.py``).
"""

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

# Before Ray is imported, which reads it then: no usage statistics to anybody.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from engine.cluster.node_cache import NodeCache
from engine.cluster.outpost import Outpost
from engine.cluster.prefiller import Prefiller
from engine.cluster.spread import OutpostLost, Submission
from engine.cluster.worker import Worker, WorkerReport
from engine.core import Evaluation, UserError
from engine.settings import CacheSettings, ClusterSettings, ModelSettings

_CONNECTING = 5.0  # seconds
_MOST_CALLERS = 64  # of a prefiller, at once
_GONE = (
    exceptions.ActorUnschedulableError,  # on a machine that is gone
    exceptions.GetTimeoutError,
    exceptions.RayActorError,
    exceptions.RaySystemError,
)


class WorkerLost(Exception):
    """A worker is dead, or does not answer."""


class CacheLost(Exception):
    """A machine's LMCache server can't be had any more."""


class RayWorker:
    """A worker, or a prefiller, somewhere in the cluster, which may be dead."""

    def __init__(
        self, cluster: ClusterSettings, of: type[Worker] | type[Prefiller], **arguments: object
    ) -> None:
        """Ask for it; Ray starts its process where there is room for it.

        Args:
            cluster: its settings.
            of: what it is.
            arguments: with which that is made.
        """
        self._patience = cluster.patience
        kind: Any = ray.remote(of)
        self._actor: Any = kind.options(
            num_gpus=cluster.gpus,
            num_cpus=0,  # a machine's workers share its cores out: see `Worker.start`
            max_restarts=0,  # its islands go on elsewhere at once
            # `found` waits, and a prefiller's callers do; `report` does not.
            max_concurrency=4 if of is Worker else _MOST_CALLERS,
            scheduling_strategy="SPREAD",
        ).remote(**arguments)
        self._placed = self._actor.__ray_call__.remote(_place)
        self._loaded: Any = None

    def place(self) -> tuple[str, Sequence[int]] | None:
        """Return its machine, and the cores that it may use there; None as long as it has none.

        Raises:
            WorkerLost: it is dead.
        """
        found: tuple[str, Sequence[int]] | None = self._answered(self._placed)
        return found

    def start(self, cores: Sequence[int], cache: CacheSettings | None) -> None:
        """Have it load the model; see `Worker.start`."""
        self._actor.start.remote(cores, cache)
        self._loaded = self._actor.ready.remote()

    def is_ready(self) -> bool:
        """Whether the model is there.

        Raises:
            UserError: it can't be.
            WorkerLost: it is dead.
        """
        return self._loaded is not None and self._answered(self._loaded, else_=False) is None

    def call(self, method: str, *arguments: object, waits: bool = False) -> Any:
        """Return what a method of `Worker` returns.

        Args:
            method: its name.
            arguments: its own.
            waits: whether it may take longer than the patience that there is with a worker.

        Raises:
            UserError: the worker does.
            WorkerLost: it is dead, or does not answer.
        """
        return self._get(getattr(self._actor, method).remote(*arguments), waits=waits)

    def tell(self, method: str, *arguments: object) -> None:
        """Call a method, and wait for nothing."""
        getattr(self._actor, method).remote(*arguments)

    def handle(self) -> "RayPrefiller":
        """Return what a worker has of a prefiller."""
        return RayPrefiller(actor=self._actor)

    def kill(self) -> None:
        """End its process, whatever it is at."""
        ray.kill(self._actor)

    def _answered(self, answer: Any, *, else_: Any = None) -> Any:
        done, _ = ray.wait([answer], timeout=0)
        return self._get(answer) if done else else_

    def _get(self, answer: Any, *, waits: bool = False) -> Any:
        return _got(answer, seconds=None if waits else self._patience, lost=WorkerLost)


@dataclass(frozen=True, kw_only=True)
class RayPrefiller:
    """A prefiller as a worker has it; see `Prefilling`. It may be sent to a worker.

    Attributes:
        actor: the process.
    """

    actor: Any

    def prefill(self, token_ids: Sequence[int]) -> "Future[None]":
        """See `Prefilling.prefill`."""
        future: Future[None] = self.actor.prefill.remote(token_ids).future()
        return future


@dataclass(kw_only=True, eq=False)
class RayOutpost:
    """Evaluators somewhere in the cluster; see `OutpostHandle`. It may be sent to a worker.

    Attributes:
        actor: the process.
        workers: its evaluators; 0 before it was started.
        patience: seconds after which one that does not answer counts as dead.
    """

    actor: Any
    workers: int
    patience: float
    _pulse: Any = None

    @classmethod
    def asked(cls, settings: ClusterSettings, *, text: str) -> "RayOutpost":
        """Ask for one; see `Outpost`."""
        kind: Any = ray.remote(Outpost)
        actor = kind.options(
            num_cpus=0, max_restarts=0, max_concurrency=4, scheduling_strategy="SPREAD"
        ).remote(text)
        return cls(actor=actor, workers=0, patience=settings.patience)

    def place(self) -> tuple[str, Sequence[int]]:
        """Return its machine, and the cores that it may use there."""
        found: tuple[str, Sequence[int]] = self._get(self.actor.__ray_call__.remote(_place))
        return found

    def start(self, cores: Sequence[int]) -> None:
        """Start an evaluator on each core.

        Raises:
            UserError: as `Outpost.start`.
        """
        self.workers = self._get(self.actor.start.remote(cores))

    def submit(self, programs: Sequence[Submission]) -> None:
        """See `OutpostHandle.submit`; that it is lost is found by `take`."""
        self.actor.submit.remote(programs)

    def take(self, seconds: float) -> Sequence[tuple[str, Evaluation]]:
        """See `OutpostHandle.take`."""
        found: Sequence[tuple[str, Evaluation]] = self._get(self.actor.take.remote(seconds))
        return found

    def check(self) -> None:
        """Do nothing while it lives; does not wait for it.

        Raises:
            OutpostLost: it is dead.
        """
        if self._pulse is None:
            self._pulse = self.actor.__ray_ready__.remote()
        done, _ = ray.wait([self._pulse], timeout=0)
        if done:
            pulse, self._pulse = self._pulse, None
            self._get(pulse)

    def kill(self) -> None:
        """End its process."""
        ray.kill(self.actor)

    def _get(self, answer: Any) -> Any:
        return _got(answer, seconds=self.patience, lost=OutpostLost)


class RayNodeCache:
    """The process that holds a machine's LMCache server; see `NodeCache`."""

    def __init__(
        self, settings: ClusterSettings, *, node: str, cache: CacheSettings, model: ModelSettings
    ) -> None:
        """Have Ray start it on a machine."""
        self.patience = settings.patience
        kind: Any = ray.remote(NodeCache)
        self.actor: Any = kind.options(
            num_cpus=0,
            max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        ).remote(cache, model)
        self._asked: Any = None

    def settings(self) -> CacheSettings | None:
        """Return what `NodeCache.settings` does; None as long as it does not answer.

        Raises:
            UserError: it does.
            CacheLost: it is dead, or its machine.
        """
        if self._asked is None:
            self._asked = self.actor.settings.remote()
        done, _ = ray.wait([self._asked], timeout=0)
        if not done:
            return None
        asked, self._asked = self._asked, None
        found: CacheSettings = _got(asked, seconds=self.patience, lost=CacheLost)
        return found

    def kill(self) -> None:
        """End its process."""
        ray.kill(self.actor)


def end_caches(caches: Sequence[RayNodeCache]) -> None:
    """End machines' servers, and give them time to store what they have."""
    closing = [each.actor.close.remote() for each in caches]
    if closing:
        ray.wait(closing, num_returns=len(closing), timeout=caches[0].patience)
    for each in caches:
        each.kill()


def reports(workers: Sequence[RayWorker]) -> Mapping[RayWorker, WorkerReport | WorkerLost]:
    """Return how workers stand, or that they are lost; all are asked at once."""
    asked = {worker: worker._actor.report.remote() for worker in workers}
    found: dict[RayWorker, WorkerReport | WorkerLost] = {}
    for worker, answer in asked.items():
        try:
            found[worker] = worker._get(answer)
        except WorkerLost as error:
            found[worker] = error
    return found


@contextmanager
def open_ray(settings: ClusterSettings) -> Iterator[None]:
    """Join a Ray cluster, or start one on this machine that is reached from nowhere else.

    Raises:
        UserError: the cluster can't be reached.
    """
    try:
        if settings.address is not None:
            # Ray itself tries for minutes.
            host, _, port = settings.address.rpartition(":")
            socket.create_connection((host, int(port)), timeout=_CONNECTING).close()
        if settings.address is None:
            ray.init(
                address="local",
                _node_ip_address="127.0.0.1",
                include_dashboard=False,
                configure_logging=False,
            )
        else:
            ray.init(address=settings.address, configure_logging=False)
    except (ConnectionError, RuntimeError, OSError) as error:
        line = str(error).partition("\n")[0]
        raise UserError(
            f"cluster.address={settings.address} can't be reached: {line}; start it with "
            "`ray start --head`"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _got(answer: Any, *, seconds: float | None, lost: type[Exception]) -> Any:
    """Return what a process answers.

    Raises:
        UserError: it does.
        Exception: ``lost``, where it is dead or does not answer in time.
    """
    try:
        return ray.get(answer, timeout=seconds)
    except exceptions.RayTaskError as error:
        if isinstance(error.cause, UserError):
            raise error.cause from None
        raise
    except _GONE as error:
        raise lost(str(error).partition("\n")[0]) from error


def _place(actor: Worker | Outpost) -> tuple[str, Sequence[int]]:
    """Return, in a worker's process, its machine, and the cores that it may use there."""
    return ray.get_runtime_context().get_node_id(), sorted(os.sched_getaffinity(0))

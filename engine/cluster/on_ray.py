"""Workers as Ray actors, and what all actors of a run have in common.

Covers: starting or joining a Ray cluster, and calls to workers that may be dead, slow or cut off.
Does not cover which workers there are to be (``fleet.py``), which islands they get (``driver.py``),
or the cluster's machines (``machines.py``).
"""

import os
import socket
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ray
from ray import exceptions
from ray._private.state import state  # Ray has no public way without its dashboard

from engine.cluster.kv.prefiller import Prefiller
from engine.cluster.worker import Worker
from engine.cluster.worker_report import WorkerReport
from engine.core import UserError
from engine.settings import CacheSettings, ClusterSettings

_CONNECTING = 5.0  # seconds
CPUS = 0.001
"""Of a process, to Ray: next to none, because a machine's workers share its cores out themselves
(`Worker.start`), but not none, because Ray spreads only what needs something over the machines."""
_MOST_CALLERS = 64  # of a prefiller, at once


class WorkerLost(Exception):
    """A worker is dead, does not answer, or can't work."""


class RayWorker:
    """A worker, or a prefiller, somewhere in the cluster, which may be dead."""

    def __init__(
        self,
        cluster: ClusterSettings,
        of: type[Worker] | type[Prefiller],
        *,
        label: str,
        **arguments: object,
    ) -> None:
        """Ask for it; Ray starts its process where there is room for it.

        Args:
            cluster: its settings.
            of: what it is.
            label: what is said of it where the cluster's processes are listed.
            arguments: with which that is made.
        """
        self._patience = cluster.patience
        kind: Any = ray.remote(of)
        self._actor: Any = kind.options(
            name=named(label),
            num_gpus=cluster.gpus,
            num_cpus=CPUS,
            max_restarts=0,  # its islands go on elsewhere at once
            # `found` waits, and a prefiller's callers do; `report` does not.
            max_concurrency=4 if of is Worker else _MOST_CALLERS,
            scheduling_strategy="SPREAD",
        ).remote(**arguments)
        self._placed = self._actor.__ray_call__.remote(place_of)
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
        return got(answer, seconds=None if waits else self._patience, lost=WorkerLost)


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


def leaving() -> Collection[str]:
    """Return the machines that are drained, as `RayWorker.place` names them."""
    found: Mapping[str, int] = state.get_draining_nodes()
    return found.keys()


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
    except (ConnectionError, RuntimeError, OSError, exceptions.AuthenticationError) as error:
        line = str(error).partition("\n")[0]
        raise UserError(
            f"cluster.address={settings.address} can't be reached: {line}; start it with "
            "`brood cluster start`"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def named(name: str) -> str:
    """Return an actor's name, which says what it is part of and is its own."""
    return f"{name}/{uuid.uuid4().hex}"


def got(answer: Any, *, seconds: float | None, lost: type[Exception]) -> Any:
    """Return what a process answers.

    Raises:
        UserError: it does.
        Exception: ``lost``, where it is dead, does not answer in time or fails as nobody expects.
    """
    try:
        return ray.get(answer, timeout=seconds)
    except exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, UserError):
            raise cause from None
        raise lost(f"{type(cause).__name__}: {cause}".partition("\n")[0]) from error
    except exceptions.RayError as error:  # it, or its machine with what it answered, is gone
        raise lost(str(error).partition("\n")[0]) from error


def place_of(actor: object) -> tuple[str, Sequence[int]]:
    """Return, in a worker's process, its machine, and the cores that it may use there."""
    return ray.get_runtime_context().get_node_id(), sorted(os.sched_getaffinity(0))

"""A discrete-event simulation of islands on a cluster, with SimPy.

Each island is a process: wait for the neighbours' migrants where an epoch ends, wait for the
model, for the loop, for the store, for the evaluators, for the store again. What is shared is a
resource with a queue: the loop and the evaluators of a worker, the store of all. A call's time at
the model grows with the calls that are in the batch when it begins.

Left out: workers that die, the network's bandwidth, queues inside Ray, and that a search gets
better or worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from bench.scale.costs import Cluster, Costs


@dataclass(kw_only=True)
class _Worker:
    loop: simpy.Resource
    evaluators: simpy.Resource
    speed: float
    calls: int = 0  # in the batch


@dataclass(kw_only=True)
class Tally:
    """What a simulated run did after its beginning.

    Attributes:
        candidates: evaluated.
        seconds: simulated.
        store: seconds of the store's work, over all it can do at once.
        migration: seconds in which islands waited for neighbours.
        queue: seconds in which islands waited for the store; of the questions of one call, which
            wait side by side, the mean.
    """

    candidates: int = 0
    seconds: float = 0.0
    store: float = 0.0
    migration: float = 0.0
    queue: float = 0.0
    finished: list[int] = field(default_factory=list)  # iterations, by island


class Simulation:
    """One run on a cluster; see the module."""

    def __init__(self, costs: Costs, cluster: Cluster, *, seed: int) -> None:
        """Set it up; nothing has happened yet."""
        self._costs, self._cluster = costs, cluster
        self._env = simpy.Environment()
        self._rng = np.random.default_rng(seed)
        self._store = simpy.Resource(self._env, capacity=cluster.store)
        speeds = np.exp(cluster.spread * self._rng.standard_normal(cluster.workers))
        self._workers = [
            _Worker(
                loop=simpy.Resource(self._env),
                evaluators=simpy.Resource(self._env, capacity=cluster.evaluators),
                speed=float(speed),
            )
            for speed in speeds
        ]
        count = cluster.workers * cluster.islands
        self._tally = Tally(finished=[0] * count)
        self._moved: list[list[simpy.Event]] = [[] for _ in range(count)]  # who waits for an epoch
        self._is_counted = False

    def run(self, *, warm: float, seconds: float) -> Tally:
        """Simulate; return what happened after ``warm`` seconds, in as many as ``seconds``."""
        for number in range(len(self._tally.finished)):
            self._env.process(self._island(number))
        self._env.run(until=warm)
        self._is_counted = True
        self._env.run(until=warm + seconds)
        self._tally.seconds = seconds
        return self._tally

    def _island(self, number: int) -> Iterator[simpy.Event]:
        costs, cluster = self._costs, self._cluster
        worker = self._workers[number % cluster.workers]
        yield self._env.timeout(float(self._rng.uniform(0, costs.call)))  # not all at once
        while True:
            finished = self._tally.finished[number]
            if cluster.every and finished and finished % cluster.every == 0:
                yield from self._migrate(number, finished // cluster.every)
            yield from self._call(worker)
            yield from self._used(worker.loop, costs.loop)
            yield from self._at_store(costs.commit * costs.commits / 2)
            count = int(cluster.candidates + self._rng.random())
            jobs = [self._env.process(self._evaluate(worker, of=count)) for _ in range(count)]
            yield simpy.AllOf(self._env, jobs)
            yield from self._at_store(costs.commit * costs.commits / 2)
            self._tally.finished[number] += 1
            if cluster.every and self._tally.finished[number] % cluster.every == 0:
                waiting, self._moved[number] = self._moved[number], []
                for event in waiting:
                    event.succeed()

    def _migrate(self, number: int, epoch: int) -> Iterator[simpy.Event]:
        """Wait for the island before this one on the ring to end the epoch before."""
        source = (number - 1) % len(self._tally.finished)
        began = self._env.now
        while self._tally.finished[source] < (epoch - 1) * self._cluster.every:
            event = self._env.event()
            self._moved[source].append(event)
            yield event
        self._count("migration", self._env.now - began)
        if epoch > 1:
            yield from self._at_store(self._costs.read * (1 + 2 * self._cluster.migrants))

    def _call(self, worker: _Worker) -> Iterator[simpy.Event]:
        seconds = (self._costs.call + self._costs.beside * worker.calls) / worker.speed
        worker.calls += 1
        yield self._env.timeout(seconds * float(self._rng.lognormal(-0.02, 0.2)))
        worker.calls -= 1

    def _evaluate(self, worker: _Worker, *, of: int) -> Iterator[simpy.Event]:
        if self._costs.lookup:
            yield from self._at_store(self._costs.lookup, of=of)
        yield from self._used(worker.evaluators, self._costs.evaluation)
        self._count("candidates", 1)

    def _at_store(self, seconds: float, *, of: int = 1) -> Iterator[simpy.Event]:
        began = self._env.now
        with self._store.request() as turn:
            yield turn
            self._count("queue", (self._env.now - began) / of)
            yield self._env.timeout(seconds)
            self._count("store", seconds / self._cluster.store)

    def _used(self, resource: simpy.Resource, seconds: float) -> Iterator[simpy.Event]:
        with resource.request() as turn:
            yield turn
            yield self._env.timeout(seconds)

    def _count(self, name: str, amount: float) -> None:
        if self._is_counted:
            setattr(self._tally, name, getattr(self._tally, name) + amount)


def simulated(
    costs: Costs, cluster: Cluster, *, seeds: int, warm: float, seconds: float
) -> dict[str, Any]:
    """Return the figures of a cluster, over several simulated runs."""
    tallies = [
        Simulation(costs, cluster, seed=seed).run(warm=warm, seconds=seconds)
        for seed in range(seeds)
    ]
    an_hour = [3600 * each.candidates / each.seconds for each in tallies]
    islands = cluster.workers * cluster.islands
    mean = float(np.mean(an_hour))
    return {
        "workers": cluster.workers,
        "candidates_an_hour": round(mean, 1),
        "error": round(2 * float(np.std(an_hour)) / math.sqrt(seeds), 1),
        "store_busy": _share(tallies, "store", 1),
        "waiting_for_store": _share(tallies, "queue", islands),
        "waiting_for_migrants": _share(tallies, "migration", islands),
        "driver_busy": round(1 - costs.pause / (costs.pause + costs.report * cluster.workers), 4),
    }


def _share(tallies: list[Tally], name: str, of: int) -> float:
    return round(float(np.mean([getattr(each, name) / each.seconds / of for each in tallies])), 4)

"""The machines' LMCache servers as Ray actors."""

from collections.abc import Sequence
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from engine.cluster.kv.node_cache import NodeCache
from engine.cluster.on_ray import got
from engine.settings import CacheSettings, ClusterSettings, ModelSettings


class CacheLost(Exception):
    """A machine's LMCache server can't be had any more."""


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
        found: CacheSettings = got(asked, seconds=self.patience, lost=CacheLost)
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

"""The LMCache servers of a run: one on each machine that has a worker.

The workers that had a server which is lost go on without; the next one that starts there gets a new
server, which finds what the old one had written to the disk.
"""

import logging
from collections.abc import Callable, Collection
from dataclasses import replace

from engine.cluster.kv.ray_node_cache import CacheLost, RayNodeCache, end_caches
from engine.settings import CacheSettings

_log = logging.getLogger("brood")


class NodeCaches:
    """See the module. One thread uses it."""

    def __init__(self, settings: CacheSettings, make: Callable[[str], RayNodeCache]) -> None:
        """Have no server yet.

        Args:
            settings: of the run.
            make: asks for the process that holds the server of a machine.
        """
        self._without = replace(settings, kind="none")
        self._make = make
        self._at: dict[str, RayNodeCache] = {}

    def settings(self, node: str) -> CacheSettings | None:
        """Return what a worker that starts on a machine is told; None as long as its server starts.

        Raises:
            UserError: there can't be one with this model, or with the LMCache there.
        """
        if node not in self._at:
            self._at[node] = self._make(node)
        try:
            return self._at[node].settings()
        except CacheLost as error:
            _log.warning("a machine's LMCache server is lost (%s); a worker starts without", error)
            self._at.pop(node).kill()
            return self._without

    def leave(self, nodes: Collection[str]) -> None:
        """End those of some machines, with what they stored on disk."""
        end_caches([self._at.pop(node) for node in [*self._at] if node in nodes])

    def close(self) -> None:
        """End all of them, likewise."""
        self.leave([*self._at])

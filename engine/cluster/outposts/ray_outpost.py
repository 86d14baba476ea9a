"""Outposts as Ray actors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray

from engine.cluster.on_ray import CPUS, got, named, place_of
from engine.cluster.outposts.outpost import Outpost
from engine.cluster.outposts.spread import OutpostLost, Submission
from engine.core import Evaluation
from engine.settings import ClusterSettings


@dataclass(kw_only=True, eq=False)
class RayOutpost:
    """Evaluators somewhere in the cluster; see `OutpostHandle`. It may be sent to a worker.

    Attributes:
        actor: the process.
        workers: its evaluators; 0 before it was started.
        node: its machine; empty before `place`.
        patience: seconds after which one that does not answer counts as dead.
    """

    actor: Any
    workers: int
    patience: float
    node: str = ""
    _pulse: Any = None

    @classmethod
    def asked(
        cls, settings: ClusterSettings, *, text: str, fingerprint: str, name: str
    ) -> "RayOutpost":
        """Ask for one; see `RayWorker`, and `Outpost` for its text and fingerprint."""
        kind: Any = ray.remote(Outpost)
        actor = kind.options(
            name=named(f"{name} outpost"),
            num_cpus=CPUS,
            max_restarts=0,
            max_concurrency=4,
            scheduling_strategy="SPREAD",
        ).remote(text, fingerprint=fingerprint)
        return cls(actor=actor, workers=0, patience=settings.patience)

    def place(self) -> tuple[str, Sequence[int]]:
        """Return its machine, and the cores that it may use there."""
        found: tuple[str, Sequence[int]] = self._get(self.actor.__ray_call__.remote(place_of))
        self.node = found[0]
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
        """See `OutpostHandle.kill`; the driver sees that it is dead, and starts another one."""
        ray.kill(self.actor)

    def _get(self, answer: Any) -> Any:
        return got(answer, seconds=self.patience, lost=OutpostLost)

"""What a run needs of evaluators, whoever they belong to."""

from collections.abc import Callable
from typing import Protocol

from engine.core import Evaluation, ProcessUnfitError
from engine.timeline import Timeline


class EvaluatorsLost(ProcessUnfitError):
    """Programs get no verdict any more, and won't in this process."""


class Evaluators(Protocol):
    """Programs in, verdicts out; see `EvaluatorPool`, which is one."""

    @property
    def in_flight(self) -> int:
        """Programs submitted whose verdict `completed` has not returned yet."""

    def submit(
        self, *, candidate_id: str, program: str, stage: int | None = None, order: int = 0
    ) -> None:
        """Queue a program; its verdict comes from `completed` under ``candidate_id``."""

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        """Return all verdicts since the last call; wait up to ``timeout`` s for the first.

        Raises:
            EvaluatorsLost: one was lost and none can be started in its place.
        """

    def announce_to(self, notify: Callable[[], object]) -> None:
        """Have ``notify`` called, in another thread, whenever `completed` has a new verdict."""

    def watch(self, timeline: Timeline) -> None:
        """Record from now on when each worker is busy."""

    def check_walls(self, *, strict: bool) -> None:
        """Say which walls round a candidate are missing.

        Raises:
            UserError: one is missing and ``strict`` is set, or a worker could not be started.
        """

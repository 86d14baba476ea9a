"""What goes to a trainer, and what comes back."""

from dataclasses import dataclass, field
from pathlib import Path

from engine.learning.collapse import Variety
from engine.learning.group import Group
from engine.learning.step import Step
from engine.settings import LearningSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """What a trainer is made with.

    Attributes:
        weights: folder of the model, in Hugging Face's layout.
        settings: the run's.
        seed: the run's.
        device: ``cpu`` or ``cuda``.
        dtype: the format of the model's numbers, as torch names it.
    """

    weights: Path
    settings: LearningSettings
    seed: int
    device: str
    dtype: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One step of training.

    Attributes:
        number: of the step.
        version: of the adapter that it starts from.
        groups: to learn from.
        progress: share of the budget that is spent.
        folder: where the checkpoint is to stand.
        kept: versions to which a step may go back: the model itself, and those with a checkpoint,
            as far as they were in force since the last collapse; None for all.
        variety: of the steps before.
    """

    number: int
    version: int
    groups: tuple[Group, ...]
    progress: float
    folder: Path
    kept: frozenset[int] | None = None
    variety: Variety = field(default_factory=Variety)


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """A step is over. If it stands, the job's folder holds its checkpoint."""

    job: Job
    step: Step

    @property
    def stands(self) -> bool:
        """Whether there is a new adapter."""
        return self.step.skipped is None and self.step.rolled_back is None

    @property
    def version(self) -> int:
        """Of the adapter that the trainer holds afterwards."""
        if self.stands:
            return self.job.number
        return self.job.version if self.step.version is None else self.step.version

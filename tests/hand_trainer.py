"""A trainer and a model that do what a test says when it says so."""

from __future__ import annotations

from pathlib import Path

from engine.learning.job import Done, Job
from engine.learning.step import Step

STEP = Step(skipped=None, rolled_back=None, reward=0.25)


class HandTrainer:
    """A trainer whose steps the test ends by hand."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.done: list[Done] = []
        self.is_busy = self.is_lost = False

    def submit(self, job: Job) -> None:
        assert not self.is_busy
        self.is_busy = True
        self.jobs.append(job)

    def finish(self, step: Step = STEP) -> None:
        self.done.append(Done(job=self.jobs[-1], step=step))

    def completed(self) -> Done | None:
        if not self.done:
            return None
        self.is_busy = False
        return self.done.pop()

    def close(self) -> None:
        self.is_lost = True


class HandAdopter:
    """A model that loads an adapter when the test says so."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.loaded: list[tuple[int, float]] = []

    def adopt(self, version: int, folder: Path) -> None:
        assert folder.name == f"{version:06}"
        self.asked.append(version)

    def adopted(self) -> list[tuple[int, float]]:
        loaded, self.loaded = self.loaded, []
        return loaded

"""The trainer's process on Ray: what of its errors is a step that failed, and what a death."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ray import exceptions

from engine import config
from engine.cluster.learning import ray_trainer
from engine.cluster.learning.ray_trainer import RayTrainer
from engine.cluster.learning.trainer_actor import TrainerSettings
from engine.learning import Job
from engine.learning.steady import StepFailed


class HandRay:
    """Ray with one actor, whose methods answer what a test says: a value, or an error."""

    def __init__(self, **answers: object) -> None:
        self.answers = {"__ray_ready__": None, "load": None, **answers}

    def remote(self, kind: type) -> HandRay:
        return self

    def options(self, **_: object) -> Any:
        return Asked(self)

    def wait(self, answers: list[object], *, timeout: float) -> tuple[list[object], list[object]]:
        return answers, []

    def get(self, answer: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer


class Asked:
    """Has a ``remote``, as an actor's class and its methods have."""

    def __init__(self, ray: HandRay, answer: object = None) -> None:
        self._ray = ray
        self._answer = answer

    def remote(self, *_: object) -> Any:
        return self if self._answer is None else self._answer

    def __getattr__(self, method: str) -> Asked:
        return Asked(self._ray, self._ray.answers[method] or "done")


def failed(error: Exception) -> exceptions.RayTaskError:
    return exceptions.RayTaskError("step", "Traceback", error)


@pytest.mark.parametrize(
    ("answers", "kind", "words"),
    [
        ({"step": failed(ValueError("not finite"))}, StepFailed, "ValueError: not finite"),
        ({"step": exceptions.RayActorError()}, ConnectionError, "actor"),
        ({"load": failed(ValueError("no weights"))}, ConnectionError, "ValueError: no weights"),
        ({"load": exceptions.RayActorError()}, ConnectionError, "actor"),
    ],
)
def test_a_step_that_fails_is_no_death(
    answers: dict[str, object],
    kind: type[Exception],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ray_trainer, "ray", HandRay(**{"step": "done", **answers}))
    settings = config.resolve(["problem=signal", "learning=mean_baseline"])
    trainer = RayTrainer(
        TrainerSettings(
            model=settings.model,
            learning=settings.learning,
            seed=0,
            device="cpu",
            checkpoint=None,
        ),
        gpus=0,
        name="run",
    )
    job = Job(number=1, version=0, groups=(), progress=0.0, folder=Path("000001"))
    with pytest.raises(kind, match=words):
        trainer.step(job)

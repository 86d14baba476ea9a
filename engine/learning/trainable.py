"""Whether a run can learn at all: what can be said before a model is loaded."""

import json
from pathlib import Path

from engine.core import Problem, UserError
from engine.learning.rewards import Rewards
from engine.settings import LearningSettings


def check_learning(
    settings: LearningSettings, *, problem: Problem, initial: float, weights: Path
) -> None:
    """Check that a run can learn.

    Args:
        settings: of a method but ``none``.
        problem: the run's.
        initial: score of its initial program.
        weights: the model's folder.

    Raises:
        UserError: the reward needs a target, and the problem has none that will do; or the model
            can't be trained.
    """
    Rewards(
        kind=settings.reward, direction=problem.direction, initial=initial, target=problem.target
    )
    check_trainable(weights)


def takes_images(weights: Path) -> bool:
    """Return whether a model takes images, so that its language model is a part of it."""
    config = json.loads((weights / "config.json").read_text(encoding="utf-8"))
    return "vision_config" in config


def check_trainable(weights: Path) -> None:
    """Check that a model's weights are such as a gradient can be computed with.

    Raises:
        UserError: they are quantised, or there is no ``config.json`` that says what they are.
    """
    try:
        config = json.loads((weights / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            f"the model in {weights} can't be trained: {reason}; give model.path a folder with "
            "weights in Hugging Face's layout, or learning=none"
        ) from error
    if config.get("quantization_config"):
        raise UserError(
            f"the model in {weights} is quantised and can't be trained; give model.path a "
            "folder with its bf16 weights, or learning=none"
        )

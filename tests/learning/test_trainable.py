"""What keeps a run from learning, said in one line before it begins."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.core import UserError
from engine.learning import check_learning
from engine.problem import load_problem, shipped
from engine.settings import LearningSettings

Settings = Callable[..., LearningSettings]


def weights(folder: Path, text: str) -> Path:
    (folder / "config.json").write_text(text)
    return folder


def test_what_can_be_trained_passes(learning: Settings, tmp_path: Path) -> None:
    problem = load_problem(shipped()["signal"])
    folder = weights(tmp_path, '{"num_hidden_layers": 2}')
    for reward in ("rank", "target"):
        check_learning(learning(reward=reward), problem=problem, initial=0.499, weights=folder)


def test_quantised_weights_are_refused(learning: Settings, tmp_path: Path) -> None:
    problem = load_problem(shipped()["signal"])
    folder = weights(tmp_path, '{"quantization_config": {"quant_method": "fp8"}}')
    with pytest.raises(UserError, match=r"is quantised .* or learning=none$"):
        check_learning(learning(), problem=problem, initial=0.499, weights=folder)


@pytest.mark.parametrize("text", [None, "{"])
def test_a_folder_that_is_no_model_is_refused(
    learning: Settings, tmp_path: Path, text: str | None
) -> None:
    problem = load_problem(shipped()["signal"])
    folder = tmp_path if text is None else weights(tmp_path, text)
    with pytest.raises(UserError, match=r"can't be trained: .*Hugging Face's layout"):
        check_learning(learning(), problem=problem, initial=0.499, weights=folder)


def test_a_reward_by_progress_needs_a_target(learning: Settings, tmp_path: Path) -> None:
    problem = replace(load_problem(shipped()["signal"]), target=None)
    folder = weights(tmp_path, "{}")
    with pytest.raises(UserError, match=r"declares no target"):
        check_learning(learning(reward="target"), problem=problem, initial=0.499, weights=folder)

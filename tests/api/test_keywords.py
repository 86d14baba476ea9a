"""Settings as keywords."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import config
from engine.api.keywords import arguments_of, model_arguments, problem_arguments
from engine.problem import shipped


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [
        ({"model": "mutation", "seed": 3}, ["model=mutation", "seed=3"]),
        ({"budget": {"candidates": 50, "seconds": None}}, None),
        ({"search": {"parent": {"policy": "shinka"}}}, ["search.parent.policy=shinka"]),
        ({"budget.candidates": 5}, ["budget.candidates=5"]),
        ({"evaluation": {"strict": True}}, ["evaluation.strict=true"]),
        ({"seed": np.int64(3)}, ["seed=3"]),
        ({"budget": {"seconds": np.float64(0.5)}}, ["budget.seconds=0.5"]),
        ({"budget": {"target": np.float32(-0.25)}}, ["budget.target=-0.25"]),
    ],
)
def test_keywords_are_arguments(settings: dict[str, Any], arguments: list[str] | None) -> None:
    expected = arguments or ["budget.candidates=50", "budget.seconds=null"]
    assert arguments_of(settings) == expected


def test_a_problem_is_a_name_or_a_folder(tmp_path: Path) -> None:
    assert problem_arguments("signal") == ["problem=signal"]
    for given_as in (tmp_path, str(tmp_path)):
        settings = config.resolve(problem_arguments(given_as))
        assert settings.problem == str(tmp_path)
    assert config.resolve(problem_arguments("signal")).problem == str(shipped()["signal"])


def test_a_model_is_a_preset_or_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A preset's name stays one though there is such a folder, as at the command line."""
    monkeypatch.chdir(tmp_path)
    for name in ("weights", "mutation"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text('{"max_position_embeddings": 512}')
    for given_as in ("weights", "./weights", Path("weights"), tmp_path / "weights"):
        model = config.resolve(model_arguments(given_as)).model
        assert (model.path, model.name) == (str(tmp_path / "weights"), "weights")
    assert model_arguments("mutation") == ["model=mutation"]
    assert model_arguments(Path("mutation")) == ["model.path=mutation"]
    assert model_arguments("owner/model") == ["model.path='owner/model'"]


@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1))
def test_any_text_arrives_as_it_is(text: str) -> None:
    assert config.resolve(arguments_of({"data": f"/{text}"})).data == f"/{text}"


def test_lists_and_names_that_look_like_values(tmp_path: Path) -> None:
    settings = config.resolve(arguments_of({"pool": {"sources": [tmp_path, "shipped"]}}))
    assert settings.pool.sources[0] == str(tmp_path)
    assert config.resolve(arguments_of({"name": "null"})).name == "null"

"""``method=codeevolve``: its parts are what the paper and its code say."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import read_events, run

from engine import config
from engine.beginning import archive_features
from engine.problem import load_problem
from engine.search.cells.cvt import CvtSettings, Tessellation
from engine.search.inspirations.parents import ParentsSettings
from engine.search.parents.codeevolve import CodeEvolveSettings

MUTATED = ("model=mutation", "search.operators.diff=0", "search.operators.mutation=1")


def test_its_parts_are_what_the_source_says() -> None:
    settings = config.resolve(["method=codeevolve"])
    search, islands, prompts = settings.search, settings.islands, settings.prompts
    assert (islands.count, islands.topology.policy, islands.migrate_every) == (10, "ring", 25)
    assert search.parent == CodeEvolveSettings(
        policy="codeevolve",
        population=10,
        rate=0.2,
        least=0.2,
        most=0.5,
        patience=5,
        increase=1.05,
        decrease=0.95,
    )
    assert search.cells == CvtSettings(policy="cvt", centroids=50, samples=1000)
    assert islands.migrants == 5  # a tenth of the cells
    assert (search.k, settings.width.policy) == (1, "fixed")
    assert (search.temperature_min, search.temperature_max) == (0.7, 0.9)
    assert {name for name, weight in search.operators.items() if weight} == {"diff"}
    assert (prompts.layout, prompts.ancestors) == ("ancestors", 3)
    assert search.inspirations == ParentsSettings(policy="parents", count=2)
    assert settings.guidance.enabled and not settings.pipeline.speculate
    assert (search.failures, search.novelty) == (0, None)


def test_its_archive_is_a_tessellation_of_the_structure() -> None:
    settings = config.resolve(["method=codeevolve", "problem=signal"])
    cells = archive_features(settings, load_problem(Path(settings.problem)))
    assert isinstance(cells, Tessellation)
    assert [each.name for each in cells] == ["nodes", "depth"]
    assert cells.centroids.shape == (50, 2)


@pytest.mark.parametrize("model", ["smollm2", "qwen3_coder_30b"])
def test_a_models_sizes_stay(model: str) -> None:
    own, plain = (config.resolve([f"model={model}", m]) for m in ("method=codeevolve", "seed=0"))
    assert own.model == plain.model
    assert own.prompts.history_tokens == own.model.max_model_len // 4


@pytest.mark.slow
def test_its_search_runs_with_mutations_and_goes_on(tmp_path: Path) -> None:
    small = ("problem=uncertainty", "islands.count=2", "search.parent.population=3")
    done = run(
        *("method=codeevolve", *MUTATED, *small, "budget.candidates=24", "budget.seconds=null"),
        *(f"runs={tmp_path}", "name=mutated"),
        scratch=tmp_path / "scratch",
    )
    assert done.returncode == 0, done.stderr
    events = read_events(tmp_path / "mutated")
    assert {"first", "exploit"} <= {each["rule"] for each in events["call"]}
    assert all(0 <= each["cell"][0] < 50 for each in events["verdict"] if each["cell"])
    assert not events["guidance"]
    again = run(f"resume={tmp_path / 'mutated'}", scratch=tmp_path / "scratch")
    assert again.returncode == 0, again.stderr
    assert read_events(tmp_path / "mutated")["call"] == events["call"]

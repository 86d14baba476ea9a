"""What derives from a run's seed: each draw has random numbers of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine import config
from engine.core import INITIAL, Candidate, Direction
from engine.pool.seeding import allocate
from engine.search.search import Search
from engine.search.widths.cost_aware import CostAwareSettings
from engine.syntax import read

ISLANDS = ITERATIONS = 90  # more than any word that keeps draws apart
SETTINGS = config.resolve(["prompts.layout=stable"])


def draw_all(seed: int) -> None:
    """Make every draw of a run that derives from its seed."""
    pool = [Candidate(id=name, program=name, score=1.0) for name in "abc"]
    for assignment in ("kmeans", "random"):
        allocate(
            pool,
            np.eye(3, dtype=np.float32),
            islands=ISLANDS,
            assignment=assignment,
            mixing=0.5 if assignment == "kmeans" else 0.0,
            elites=0.5,
            direction=Direction.MAXIMISE,
            seed=seed,
        )
    search = Search(
        settings=SETTINGS.search,
        width=SETTINGS.width,
        islands=replace(SETTINGS.islands, count=ISLANDS),
        prompts=SETTINGS.prompts,
        direction=Direction.MAXIMISE,
        seed=seed,
        size=len,
    )
    search.begin_with(INITIAL, read("x = 1"), score=1.0)
    for island in range(0, ISLANDS, 5):
        width = CostAwareSettings(policy="cost_aware", k_max=2).make(k=1, seed=seed, island=island)
        for iteration in range(ITERATIONS):
            search.ask(iteration, island=island)
            width.k(iteration=iteration)


@pytest.mark.parametrize("seed", [0, 7, 2**63 - 1])
def test_no_two_generators_begin_alike(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    made: Callable[..., np.random.Generator] = np.random.default_rng
    first: dict[tuple[int, ...], int] = {}

    def noted(words: Any) -> np.random.Generator:
        if isinstance(words, list):  # and not a generator that is handed on
            first[tuple(words)] = int(made(words).integers(2**63))
        return made(words)

    monkeypatch.setattr(np.random, "default_rng", noted)
    draw_all(seed)
    assert len(first) > ISLANDS + ITERATIONS
    assert len(set(first.values())) == len(first)

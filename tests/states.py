"""The state of a run that knows nothing, for tests that bring its events themselves."""

from __future__ import annotations

from collections.abc import Sequence

from engine.core import Direction, Feature
from engine.pipeline import RunState
from engine.search.search import Search
from engine.settings import RunSettings
from engine.store import RunHistory


def state_of(
    settings: RunSettings,
    *,
    seed: int = 1,
    workers: int = 1,
    features: Sequence[Feature] | None = None,
) -> RunState:
    """Return the state of a run that maximises, and measures programs by their characters."""
    return RunState(
        history=RunHistory(direction=Direction.MAXIMISE),
        search=Search(
            settings=settings.search,
            width=settings.width,
            islands=settings.islands,
            prompts=settings.prompts,
            direction=Direction.MAXIMISE,
            seed=seed,
            size=len,
            features=features,
        ),
        workers=workers,
    )

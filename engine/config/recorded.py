"""Runs that were recorded, for who reads several of them: their folders, and how they are scored.

Does not cover their settings, ``saved.py``, or their events, ``engine.store``.
"""

from collections.abc import Sequence
from pathlib import Path

from engine.core import Direction, Feature, UserError
from engine.documents import read_json
from engine.problem import read_direction, read_features
from engine.settings import RunSettings


def check_folders(folders: Sequence[Path]) -> None:
    """Check that there are runs to read, each of them once.

    Raises:
        UserError: no folder is given, or one is given twice.
    """
    if not folders:
        raise UserError("give at least one run's folder, such as runs/NAME")
    seen: set[Path] = set()
    for folder in folders:
        if folder.resolve() in seen:
            raise UserError(f"{folder} is given twice; a run counts once")
        seen.add(folder.resolve())


def recorded_scores(
    settings: RunSettings, *, folder: Path
) -> tuple[Direction, tuple[Feature, ...]]:
    """Return what a run's problem declares of its scores; where it is gone, as the run's summary.

    Args:
        settings: the run's, as `engine.config.load_recorded` returns them.
        folder: the run's.

    Raises:
        UserError: the problem's declaration is not complete, or both are gone.
    """
    problem, summary = Path(settings.problem), folder / "summary.json"
    if problem.exists():
        return read_direction(problem), read_features(problem)
    try:
        said = read_json(summary.read_text(encoding="utf-8"))
        return Direction(said["direction"]), tuple(Feature(**each) for each in said["features"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise UserError(
            f"{problem}: the problem's folder is gone, and {summary} does not say whether its "
            "score is minimised; put one of them back"
        ) from error

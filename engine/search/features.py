"""Features of a program: the dimensions of an archive, and what is measured for them.

Three kinds: length (``characters``, ``nodes``), structure (``depth``, ``loops``, ``branches``,
``calls``), and behaviour, which is any metric that a problem's scoring returns. All of them can be
had without a model, so a program's features are the same whichever model wrote it.

Ranges are fixed and not learnt from the programs seen, so the bin of a program never depends on
which other programs came before it, and is recorded with its verdict.

Covers: what is measured, which features a run's archive has, and a program's cell in it. Does not
cover how their space is cut (``cells``), or what an archive keeps (``archive``).
"""

import math
from collections.abc import Mapping, Sequence

from engine.core import Cell, Evaluation, Feature, Program, UserError
from engine.search.cells import Cells
from engine.search.cells.grid import Grid
from engine.syntax import read

MEASURES = ("characters", "nodes", "depth", "loops", "branches", "calls")
"""What `measure` says of a program without running it. A metric of such a name is no feature."""
STRUCTURE = {"nodes": 4, "depth": 2}
"""Features of a ``structure`` archive, and up to how often the initial program's value they go."""
BINS_EACH = 4
"""Bins of a ``structure`` archive from 0 to the initial program's value."""


def dimensions(
    archive: str, *, initial_program: str, declared: Sequence[Feature]
) -> tuple[Feature, ...] | None:
    """Return the features of a run's archive; None if it is to have none.

    The structure's ranges follow from the initial program, the one thing that is known before the
    run. A bin is a quarter of its nodes or of its depth, so that small changes fall into different
    bins. Programs grow during a search, more in size than in depth, because statements stand one
    after the other. So the ranges go to 4 times the nodes and twice the depth: 16 by 8 bins. What
    lies beyond counts as in the last bin.

    Args:
        archive: ``none``, ``structure``, or ``problem`` for the features that the problem names.
        initial_program: the problem's.
        declared: those that it names.

    Raises:
        UserError: the problem is to name features and names none.
    """
    if archive == "none":
        return None
    if archive == "problem":
        if not declared:
            raise UserError(
                "search.archive=problem needs a problem.yaml with features (NAME: [low, high, "
                "bins]), and this problem's has none; add some, or give search.archive=structure"
            )
        return tuple(declared)
    measured = measure(read(initial_program), metrics={})
    return tuple(
        Feature(
            name=name,
            low=0.0,
            high=times * max(1.0, measured.get(name, 0.0)),
            bins=times * BINS_EACH,
        )
        for name, times in STRUCTURE.items()
    )


def measure(program: Program | None, *, metrics: Mapping[str, float]) -> dict[str, float]:
    """Return a program's features by name: `MEASURES`, and the metrics that have other names.

    Args:
        program: None for a text that is none, of which the metrics are all that is measured.
        metrics: of its evaluation.
    """
    values = {name: value for name, value in metrics.items() if name not in MEASURES}
    if program is None:
        return values
    syntax = {name: getattr(program, name) for name in MEASURES if name != "characters"}
    return {**values, "characters": len(program.text), **syntax}


def cell_of(
    program: Program | None, evaluation: Evaluation, *, features: Sequence[Feature] | None
) -> Cell | None:
    """Return the cell of an evaluated program.

    Args:
        program: None for a text that is none.
        evaluation: the verdict on it.
        features: of the archives; without `Cells` of theirs a grid. None where there are none.

    Returns:
        None without a score or an archive, and where a feature is missing or not a number.
    """
    if features is None or evaluation.score is None:
        return None
    values = measure(program, metrics=evaluation.metrics)
    found = [values.get(feature.name, math.nan) for feature in features]
    if any(math.isnan(value) for value in found):
        return None
    cells = features if isinstance(features, Cells) else Grid(features)
    return cells.cell(found)

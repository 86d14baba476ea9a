"""Features of a program: the dimensions of an archive, and what is measured for them.

Three kinds: length (``characters``, ``nodes``), structure (``depth``, ``loops``, ``branches``,
``calls``), and behaviour, which is any metric that a problem's scoring returns. All of them can be
had without a model, so a program's features are the same whichever model wrote it.

Ranges are fixed and not learnt from the programs seen, so the bin of a program never depends on
which other programs came before it, and is recorded with its verdict.

Covers: what is measured, which features a run's archive has, and a program's cell in it. Does not
cover what an archive keeps: ``archive``.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence

from engine import program as programs
from engine.core import Evaluation, Feature, UserError

Cell = tuple[int, ...]
"""The number of a bin for each feature, in the order of the features."""

MEASURES = ("characters", "nodes", "depth", "loops", "branches", "calls")
"""What `measure` says of a program without running it. A metric of such a name is no feature."""
STRUCTURE = {"nodes": 4, "depth": 2}
"""Features of a ``structure`` archive, and up to how often the initial program's value they go."""
BINS_EACH = 4
"""Bins of a ``structure`` archive from 0 to the initial program's value."""

_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
_BRANCHES = (ast.If, ast.IfExp, ast.match_case, ast.ExceptHandler)


def dimensions(
    archive: str, *, initial_program: str, declared: Sequence[Feature]
) -> tuple[Feature, ...] | None:
    """Return the features of a run's archive; None if it is to have none.

    The structure's ranges are fixed from the initial program, the one thing that is known before
    the run: bins of a quarter of its nodes and of its depth, as small changes have to be told
    apart. Programs grow: where the embedded model took ``signal`` from 0.499 to 0.727 they
    had 0.7 to 1.8 times its nodes, and 0.9 to 1.8 times its depth. Whole rewrites grow
    further, in size and not in depth, as statements stand one after the other: hence 4 times the
    nodes and twice the depth, 16 by 8 bins. What is beyond counts as in the last bin.

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
    measured = measure(initial_program, metrics={})
    return tuple(
        Feature(
            name=name,
            low=0.0,
            high=times * max(1.0, measured.get(name, 0.0)),
            bins=times * BINS_EACH,
        )
        for name, times in STRUCTURE.items()
    )


def measure(program: str, *, metrics: Mapping[str, float]) -> dict[str, float]:
    """Return a program's features by name: `MEASURES`, and the metrics that have other names.

    Args:
        program: Python; of one that does not parse, or nests too deeply, the metrics are all.
        metrics: of its evaluation.
    """
    values = {name: value for name, value in metrics.items() if name not in MEASURES}
    tree = programs.parse(program)
    if tree is None:
        return values
    nodes = list(ast.walk(tree))
    measured = {
        "characters": len(program),
        "nodes": len(nodes),
        "depth": _depth(tree),
        "loops": sum(isinstance(node, _LOOPS) for node in nodes),
        "branches": sum(isinstance(node, _BRANCHES) for node in nodes),
        "calls": sum(isinstance(node, ast.Call) for node in nodes),
    }
    return {**values, **measured}


def cell_of(
    program: str, evaluation: Evaluation, *, features: Sequence[Feature] | None
) -> Cell | None:
    """Return the cell of an evaluated program.

    Args:
        program: its text.
        evaluation: the verdict on it.
        features: of the archives; None where there are none.

    Returns:
        None without a score or an archive, and where a feature is missing or not a number.
    """
    if features is None or evaluation.score is None:
        return None
    values = measure(program, metrics=evaluation.metrics)
    found = [values.get(feature.name, math.nan) for feature in features]
    if any(math.isnan(value) for value in found):
        return None
    return tuple(feature.bin(value) for feature, value in zip(features, found, strict=True))


def _depth(tree: ast.AST) -> int:
    """Return the number of levels below the root."""
    depth, level = 0, list(ast.iter_child_nodes(tree))
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth

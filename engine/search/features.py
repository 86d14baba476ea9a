"""Features of a program: the dimensions of an archive, and the bins of each.

Three kinds: length (``tokens``, ``nodes``), structure (``depth``, ``loops``, ``branches``,
``calls``), and behaviour, which is any metric that a problem's scoring returns. A problem, or a
run, names those that matter and their ranges.

Ranges are fixed and not learnt from the programs seen, so the bin of a program never depends on
which other programs came before it.

Covers: what is measured, and its bin. Does not cover what an archive keeps: ``archive``.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine import program as programs

MEASURES = ("tokens", "nodes", "depth", "loops", "branches", "calls")
"""What `measure` says of a program without running it. A metric of such a name is no feature."""

_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
_BRANCHES = (ast.If, ast.IfExp, ast.match_case, ast.ExceptHandler)


@dataclass(frozen=True, kw_only=True, slots=True)
class Feature:
    """A dimension of an archive, cut into bins of equal width.

    Attributes:
        name: one of `MEASURES`, or of a metric of the problem.
        low: where the first bin begins; smaller values count as in it.
        high: where the last bin ends; larger values count as in it.
        bins: how many, 1 or more.

    Raises:
        ValueError: the range is empty or not finite, or there is no bin.
    """

    name: str
    low: float
    high: float
    bins: int

    def __post_init__(self) -> None:
        if not 0 < self.high - self.low < math.inf:
            raise ValueError(
                f"feature {self.name!r} ranges from {self.low} to {self.high}; the first must be "
                "the smaller, and their distance finite"
            )
        if self.bins < 1:
            raise ValueError(f"feature {self.name!r} has {self.bins} bins; it needs 1 or more")

    def bin(self, value: float) -> int:
        """Return the number of the bin that holds a value, from 0.

        A bin holds its lower bound and not its upper one, but for the last one.

        Raises:
            ValueError: the value is not a number.
        """
        if math.isnan(value):
            raise ValueError(f"feature {self.name!r} is not a number")
        value = min(max(value, self.low), self.high)
        share = (value - self.low) / (self.high - self.low)
        return min(int(share * self.bins), self.bins - 1)


def measure(
    program: str, *, metrics: Mapping[str, float], size: Callable[[str], int]
) -> dict[str, float]:
    """Return a program's features by name: `MEASURES`, and the metrics that have other names.

    Args:
        program: valid Python, as every candidate is.
        metrics: of its evaluation.
        size: of a text, in tokens.

    Raises:
        ValueError: the program does not parse.
    """
    tree = programs.parse(program)
    if tree is None:
        raise ValueError("the program is not valid Python, or nests too deeply")
    nodes = list(ast.walk(tree))
    measured = {
        "tokens": size(program),
        "nodes": len(nodes),
        "depth": _depth(tree),
        "loops": sum(isinstance(node, _LOOPS) for node in nodes),
        "branches": sum(isinstance(node, _BRANCHES) for node in nodes),
        "calls": sum(isinstance(node, ast.Call) for node in nodes),
    }
    return {**metrics, **measured}


def _depth(tree: ast.AST) -> int:
    """Return the number of levels below the root."""
    depth, level = 0, list(ast.iter_child_nodes(tree))
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth

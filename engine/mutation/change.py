"""What a mutation returns, and what all of them draw from."""

import ast
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

_T = TypeVar("_T")
Change = Callable[[np.random.Generator], None]
"""Changes one place of a tree; what is left open is decided by chance."""
Within = Callable[[ast.AST], bool]
"""Says of a node of a tree as it was parsed whether it may change."""


def everywhere(_: ast.AST) -> bool:
    """Let every node change."""
    return True


def one_of(values: Sequence[_T], rng: np.random.Generator) -> _T:
    """Return one of ``values``, each as likely as the others."""
    return values[int(rng.integers(len(values)))]

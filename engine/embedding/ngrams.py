"""A program's vector without a model: hashed n-grams of its syntax tree.

The tree is read in pre-order as a sequence of node types. Features are all runs of one to three
types, which say how the program is built, and every name and constant with the type of its node,
which say what of. A feature that occurs c times weighs ln(1 + c), so that what every program is
full of does not drown the rest. Features are hashed to a place and a sign (Weinberger et al.,
"Feature hashing for large scale multitask learning", 2009, section 2), so that two that meet in a
place cancel as often as they add up, and the dot product of two programs is right on average.

Programs that differ in layout, comments, docstrings or annotations alone have one vector, but for
whether a name in the body of a class has an annotation, which makes a dataclass's field of it. Does
not cover what programs mean.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from engine.embedding.embedder import Vectors, directions
from engine.program import parse

_LONGEST = 3  # types in a row
_KEPT = 1 << 16  # places of the features asked about last
_UNSAID = frozenset({"annotation", "ctx", "kind", "returns", "type_comment"})


class NGramEmbedder:
    """Makes vectors of syntax trees."""

    def __init__(self, *, dimensions: int = 1024) -> None:
        """Choose the length of the vectors; programs of a few hundred nodes want a thousand."""
        if dimensions < 1:
            raise ValueError(f"expected at least 1 dimension, but dimensions is {dimensions}")
        self._dimensions = dimensions

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        return self._dimensions

    def embed(self, programs: Sequence[str]) -> Vectors:
        """Return a vector for each program, shape (len(programs), dimensions).

        One that does not parse has the vector 0, and is like no other.
        """
        result = np.zeros((len(programs), self._dimensions))
        for row, program in zip(result, programs, strict=True):
            tree = parse(program)
            if tree is None:
                continue
            for feature, count in Counter(_features(tree)).items():
                bits = _hash(feature)
                sign = 1.0 if bits & 1 else -1.0
                row[(bits >> 1) % self._dimensions] += sign * math.log1p(count)
        return directions(result)


def _features(tree: ast.Module) -> Iterator[str]:
    nodes = list(_nodes(tree))
    types = [type(node).__name__ for node in nodes]
    for length in range(1, _LONGEST + 1):
        for start in range(len(types) - length + 1):
            yield " ".join(types[start : start + length])
    for node, kind in zip(nodes, types, strict=True):
        for value in _values(node):
            yield f"{kind}={value}"


def _nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes that count, in pre-order."""
    todo: list[tuple[ast.AST, bool]] = [(node, False) for node in reversed(tree.body)]
    while todo:
        node, in_class = todo.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring, or as good as none
        if isinstance(node, ast.AnnAssign) and not in_class:
            if node.value is None:
                continue  # nothing but an annotation
            node = ast.Assign(targets=[node.target], value=node.value)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            in_class = isinstance(node, ast.ClassDef)
        yield node
        below: list[tuple[ast.AST, bool]] = []
        for name, value in ast.iter_fields(node):
            if name not in _UNSAID:
                each = value if isinstance(value, list) else [value]
                below += [(child, in_class) for child in each if isinstance(child, ast.AST)]
        todo += reversed(below)


def _values(node: ast.AST) -> Iterator[str]:
    """Yield the node's own names and constants."""
    for name, value in ast.iter_fields(node):
        if name in _UNSAID:
            continue
        each = value if isinstance(value, list) else [value]
        for part in each:
            if isinstance(part, ast.AST) or (part is None and name != "value"):
                continue
            # hex, because Python refuses to write an int of thousands of digits in base 10
            yield hex(part) if type(part) is int else repr(part)


@functools.lru_cache(maxsize=_KEPT)
def _hash(feature: str) -> int:
    encoded = feature.encode(errors="surrogatepass")  # a constant may hold half a pair
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest())

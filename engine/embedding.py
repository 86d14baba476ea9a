"""A program's vector: hashed n-grams of its syntax tree, to measure how alike programs are.

The tree is read in pre-order as a sequence of node types. Features are all runs of one to three
types, which describe the structure, and every name and constant with the type of its node. A
feature that occurs c times weighs ln(1 + c), so that frequent features do not drown the rest.
Features are hashed to a place and a sign (Weinberger et al., "Feature hashing for large scale
multitask learning", 2009, section 2). Two features that meet in a place cancel as often as they add
up, so the dot product of two programs is right on average.

Of a program of several files each adds its features. A file that is not Python is read as its
tokens, of which a word or a sign is its own type.

Programs that differ only in layout, comments, docstrings or annotations have the same vector. The
one exception is an annotation of a name in the body of a class: it may make a dataclass's field of
it.

Does not cover what programs mean, or what is done with vectors: ``engine.search.novelty``
(near-copies) and ``engine.pool`` (clusters).
"""

import ast
import functools
import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.core.bundle import files_of, is_bundle
from engine.syntax import parse
from engine.syntax.plain import tokens_of

Vectors = NDArray[np.float32]
DIMENSIONS = 1024
"""Length of the vectors; programs of a few hundred nodes want a thousand."""
_LONGEST = 3  # types in a row
_FEATURES_KEPT = 1 << 16
_VECTORS_KEPT = 1 << 14  # 4 KiB each
_UNSAID = frozenset({"annotation", "ctx", "kind", "returns", "type_comment"})


def embed(programs: Sequence[str], *, dimensions: int = DIMENSIONS) -> Vectors:
    """Return a vector for each program, float32, shape (len(programs), dimensions).

    A vector has length 1; that of a program that does not parse has length 0, so it is like no
    other. The vectors made last are kept.
    """
    result = np.zeros((len(programs), dimensions), np.float32)
    for row, program in enumerate(programs):
        result[row] = _vector(program, dimensions)
    return result


@functools.lru_cache(maxsize=_VECTORS_KEPT)
def _vector(program: str, dimensions: int) -> NDArray[np.float32]:
    vector = np.zeros(dimensions)
    for feature, count in Counter(_features(program)).items():
        bits = _hash(feature)
        sign = 1.0 if bits & 1 else -1.0
        vector[(bits >> 1) % dimensions] += sign * math.log1p(count)
    length = np.linalg.norm(vector)  # 0 where there are no features, or they cancel
    return (vector / length if length else vector).astype(np.float32)


def _features(program: str) -> Iterator[str]:
    """Yield the features of a program; none of one that is not valid."""
    if not is_bundle(program):
        yield from _python_features(program)
        return
    try:
        files = files_of(program)
    except ValueError:
        return
    for name, text in files.items():
        if name.endswith(".py"):
            yield from _python_features(text)
        else:
            yield from _runs([token.text for token in tokens_of(name, text)])


def _python_features(text: str) -> Iterator[str]:
    tree = parse(text)
    if tree is None:
        return
    nodes = list(_nodes(tree))
    types = [type(node).__name__ for node in nodes]
    yield from _runs(types)
    for node, kind in zip(nodes, types, strict=True):
        for value in _values(node):
            yield f"{kind}={value}"


def _runs(types: Sequence[str]) -> Iterator[str]:
    for length in range(1, _LONGEST + 1):
        for start in range(len(types) - length + 1):
            yield " ".join(types[start : start + length])


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


@functools.lru_cache(maxsize=_FEATURES_KEPT)
def _hash(feature: str) -> int:
    encoded = feature.encode(errors="surrogatepass")  # a constant may hold half a pair
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest())

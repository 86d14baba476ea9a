"""A digest under which two programs are the same.

Docstrings, other bare constants and ``pass`` beside other statements do not count. Annotations do
not count either, except in the body of a class, where a dataclass makes fields of them. Names and
constants count.
"""

import ast
import hashlib

from engine.syntax._native import canonical


def program_key(tree: ast.Module) -> str:
    """Return a digest that is equal for programs that differ in layout, comments or docstrings."""
    return hashlib.sha256(canonical(tree)).hexdigest()

"""Reading a program once: everything that the engine wants to know of its text.

Covers: texts of any length and origin. A text is Python; a bundle's files are what their names say,
and those that are not Python are read by ``plain``. Does not cover running them, or what is known
of a program beside its text.
"""

import ast
import functools
import hashlib

from engine.core import Program
from engine.core.bundle import files_of, is_bundle
from engine.syntax._native import canonical
from engine.syntax.names import undefined_names
from engine.syntax.plain import measured
from engine.syntax.tree import kinds_of, parse_whole

_KEPT = 1024  # of the texts read last; siblings are read one after the other, a parent K times
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
_BRANCHES = (ast.If, ast.IfExp, ast.match_case, ast.ExceptHandler)


@functools.lru_cache(maxsize=_KEPT)
def read(text: str) -> Program | None:
    """Return what is known of a program; None if the text isn't one.

    Valid Python is one that does not nest too deeply, and a bundle all of whose Python files are
    such. A text that was read a short while ago is not read again.
    """
    if not _is_unicode(text):
        return None
    if not is_bundle(text):
        return _python(text)
    try:
        files = files_of(text)
    except ValueError:
        return None
    found = {name: _file(name, content) for name, content in files.items()}
    parts = [each for each in found.values() if each is not None]
    if len(parts) < len(found):
        return None
    keys = [f"{name}\0{each.key}\0" for name, each in zip(found, parts, strict=True)]
    return Program(
        text=text,
        key=hashlib.sha256("".join(keys).encode()).hexdigest(),
        undefined=tuple(sorted({name for each in parts for name in each.undefined})),
        nodes=sum(each.nodes for each in parts),
        depth=max(each.depth for each in parts),
        loops=sum(each.loops for each in parts),
        branches=sum(each.branches for each in parts),
        calls=sum(each.calls for each in parts),
    )


def _is_unicode(text: str) -> bool:
    """Whether a text can be stored and tokenized: an answer's JSON may have half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _file(name: str, text: str) -> Program | None:
    return _python(text) if name.endswith(".py") else measured(name, text)


def _python(text: str) -> Program | None:
    found = parse_whole(text)
    if found is None:
        return None
    tree, nodes, depth = found
    kinds = kinds_of(nodes)
    return Program(
        text=text,
        key=program_key(tree),
        undefined=undefined_names(text, tree, kinds),
        nodes=len(nodes),
        depth=depth,
        loops=sum(len(kinds[kind]) for kind in _LOOPS),
        branches=sum(len(kinds[kind]) for kind in _BRANCHES),
        calls=len(kinds[ast.Call]),
    )


def program_key(tree: ast.Module) -> str:
    """Return a digest that is equal for programs that differ in layout, comments or docstrings.

    Docstrings, other bare constants and ``pass`` beside other statements do not count. Annotations
    do not count either, except in the body of a class, where a dataclass makes fields of them.
    Names and constants count.
    """
    return hashlib.sha256(canonical(tree)).hexdigest()

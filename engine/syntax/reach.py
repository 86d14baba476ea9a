"""Which functions and classes of a program nothing of it can reach from where it is called.

A change there can't change what the program returns. Only what stands by a name in the text counts
as reached, and what is decorated, as a decorator may keep it; a program that looks names up at run
time has nothing unreached.
"""

import ast
from collections.abc import Iterator, Sequence

from engine.syntax.tree import nodes, source_lines

_BY_NAME = frozenset({"globals", "locals", "vars", "eval", "exec", "getattr", "__import__"})
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def unreached_spans(text: str, tree: ast.Module, *, entry: str) -> tuple[tuple[int, int], ...]:
    """Return the characters of the definitions that are not reached, decorators left out.

    Args:
        text: a whole program of one file.
        tree: of the text.
        entry: the function that is called.

    Returns:
        For each the first of its characters and the first one behind it, in their order; none if
        the program does not define ``entry``.
    """
    defined = {each.name: each for each in tree.body if isinstance(each, _Definition)}
    if entry not in defined or any(_looks_up(node) for node in nodes(tree)):
        return ()
    # What is no definition runs when the program is loaded, and of definitions what is round them.
    reading = [part for each in tree.body for part in _run_at_load(each)]
    reached = {entry, *(name for name, each in defined.items() if each.decorator_list)}
    reading += [defined[name] for name in reached]
    while reading:
        for name in _names(reading.pop()):
            if name in defined and name not in reached:
                reached.add(name)
                reading.append(defined[name])
    starts = [0]
    for line in source_lines(text):
        starts.append(starts[-1] + len(line))
    # The whole of its lines: a definition of the top level begins and ends one.
    return tuple(
        (starts[each.lineno - 1], starts[each.end_lineno or each.lineno])
        for name, each in defined.items()
        if name not in reached
    )


def _run_at_load(statement: ast.stmt) -> Sequence[ast.AST]:
    """Return the parts of a top-level statement that run when the program is loaded."""
    if isinstance(statement, ast.ClassDef):
        inside = (part for each in statement.body for part in _run_at_load(each))
        return [*statement.decorator_list, *statement.bases, *statement.keywords, *inside]
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return [*statement.decorator_list, statement.args]
    return [statement]


def _names(root: ast.AST) -> Iterator[str]:
    return (node.id for node in ast.walk(root) if isinstance(node, ast.Name))


def _looks_up(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in _BY_NAME

"""A mutation of a Python file, of all of it or of one evolve block.

Of a block, only the statements in it are written anew, and nothing outside it changes. A block that
holds no whole statements of one level, such as an ``else`` branch with its head, is left alone.

Does not cover the mutations themselves: ``expressions.py`` and ``statements.py``.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from engine.mutation import expressions, statements
from engine.mutation.change import Change, Within, everywhere, one_of
from engine.syntax.tree import copy_of, nodes

Mutation = Callable[[ast.Module, Within], list[Change]]
"""Returns the changes that it may make of a tree; none if the tree has no place for it."""

MUTATIONS: Mapping[Mutation, float] = {
    expressions.constant: 4.0,
    expressions.operator: 1.0,
    expressions.comparison: 0.5,
    expressions.name: 1.0,
    expressions.call: 1.0,
    expressions.expression: 1.5,
    statements.removal: 0.5,
    statements.repetition: 0.5,
    statements.exchange: 0.5,
}
"""The mutations and their weights. Plain guesses: a null hypothesis that was tuned on the problems
that it is measured on would be none."""

_KINDS = tuple(MUTATIONS)
_SHARES = np.array(tuple(MUTATIONS.values())) / sum(MUTATIONS.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class _Block:
    """The statements of a tree that stand in an evolve block.

    Attributes:
        owner: the list that has them and perhaps others.
        before: how many others stand before them in it.
        behind: how many stand behind them.
        first: their first line, from 1.
        last: their last line.
    """

    owner: list[ast.stmt]
    before: int
    behind: int
    first: int
    last: int

    @property
    def statements(self) -> list[ast.stmt]:
        """The statements as they are now."""
        return self.owner[self.before : len(self.owner) - self.behind]

    def holds(self, node: ast.AST) -> bool:
        """Whether a node, as it was parsed, stands in it."""
        start, end = getattr(node, "lineno", 0), getattr(node, "end_lineno", None)
        return end is not None and self.first <= start and end <= self.last


def mutated_python(
    text: str, span: tuple[int, int] | None, rng: np.random.Generator, *, grows: bool
) -> str | None:
    """Return a Python file's text with one mutation; None where chance found none.

    Args:
        text: a file that parses.
        span: the characters of an evolve block, as `engine.syntax.blocks.File` has them; None for
            all of the file.
        rng: decides.
        grows: whether the mutation is `expressions.growth`, which is none of `MUTATIONS`: it is for
            programs in which these find nothing, such as one that returns its argument.
    """
    mutation: Mutation = expressions.growth
    if not grows:
        mutation = _KINDS[int(rng.choice(len(_KINDS), p=_SHARES))]
    tree = copy_of(text)
    block = None if span is None else _block(tree, text, span)
    if span is not None and block is None:
        return None
    changes = mutation(tree, everywhere if block is None else block.holds)
    if not changes:
        return None
    one_of(changes, rng)(rng)
    try:
        if span is None or block is None:
            return ast.unparse(tree) + "\n"
        return text[: span[0]] + _written(block, text[slice(*span)]) + text[span[1] :]
    # An integer of thousands of digits; a tree too deep; an f-string whose quotes unparse mixes up.
    except (ValueError, RecursionError, SyntaxError):
        return None


def _block(tree: ast.Module, text: str, span: tuple[int, int]) -> _Block | None:
    """Return the statements that fill a span of whole lines; None if none do."""
    content = text[slice(*span)]
    first = text.count("\n", 0, span[0]) + 1
    last = first + content.count("\n") - 1
    for node in nodes(tree):
        for field in ("body", "orelse", "finalbody"):
            owner = getattr(node, field, None)
            if not isinstance(owner, list):  # a lambda's body is an expression
                continue
            inside = [i for i, each in enumerate(owner) if first <= each.lineno <= last]
            if inside:
                before, behind = inside[0], len(owner) - inside[-1] - 1
                block = _Block(owner=owner, before=before, behind=behind, first=first, last=last)
                return block if _fills(block, content) else None
    return None


def _fills(block: _Block, content: str) -> bool:
    """Whether a block's statements are all that its text says."""
    # Below a head and not dedented, which would change what its strings say.
    head = "if True:\n" if _indentation(content) else ""
    try:
        alone = copy_of(head + content).body
    except (SyntaxError, ValueError):
        return False
    if head and isinstance(first := alone[0], ast.If):
        alone = first.body if len(alone) == 1 and not first.orelse else []
    return [*map(ast.dump, alone)] == [*map(ast.dump, block.statements)]


def _written(block: _Block, content: str) -> str:
    indentation = _indentation(content)
    text = "\n".join(map(ast.unparse, block.statements))
    of_strings = _lines_in_strings(text)
    return "".join(
        f"{'' if number in of_strings or not line else indentation}{line}\n"
        for number, line in enumerate(text.split("\n"), start=1)
    )


def _indentation(content: str) -> str:
    lines = (line for line in content.split("\n") if line.strip() and line.strip()[0] != "#")
    line = next(lines, "")
    return line[: len(line) - len(line.lstrip())]


def _lines_in_strings(text: str) -> set[int]:
    """Return the lines, from 1, that begin within a string, such as a docstring's later ones."""
    return {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno is not None
        for line in range(node.lineno + 1, node.end_lineno + 1)
    }

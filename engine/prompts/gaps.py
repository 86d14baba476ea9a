"""What is left out of a parent, for the model to fill: a place of its tree, or a line.

Does not cover which places there are (``engine.syntax.places``), or what may change
(``engine.syntax.blocks``).
"""

import ast
from collections.abc import Mapping, Sequence

import numpy as np

from engine.core import Gap
from engine.prompts.grammar import call_grammar, grammar_of
from engine.syntax import source_lines
from engine.syntax.library import functions_of
from engine.syntax.names import known_modules
from engine.syntax.places import Site, SiteKind
from engine.syntax.plain import tokens_of
from engine.syntax.scope import Scope, imported_at, is_integer, scope_at

_REPLACED_LINES = 0.5  # share of the lines that are written anew, where no tree tells what they are


def choose_site(
    sites: Sequence[Site], kinds: Mapping[SiteKind, float], rng: np.random.Generator
) -> Site:
    """Choose a kind by the kinds' weights, and one of its places.

    Raises:
        ValueError: there is no place.
    """
    present = sorted({site.kind for site in sites})
    weights = np.array([kinds[kind] for kind in present])
    kind = present[int(rng.choice(len(present), p=weights / weights.sum()))]
    among = [site for site in sites if site.kind == kind]
    return among[int(rng.integers(len(among)))]


def gap_at(
    site: Site, parent: str, tree: ast.Module, *, calls: float, rng: np.random.Generator
) -> tuple[Gap, str | None]:
    """Return what is left out of a parent at a place, and the grammar of what replaces it, if any.

    Args:
        site: the place.
        parent: the text.
        tree: of that.
        calls: of the assignments, the share that goes on with an imported module and a dot.
        rng: decides what is left open.
    """
    scope = scope_at(tree, line=site.line)
    modules = _modules(tree, line=site.line)
    # What is inserted is followed by a new line, indented as the statement that it pushes down.
    after = "\n" + _indentation(parent, site.start)
    targets = tuple(name for name in scope.arrays if name in scope.assignable)
    if site.kind is SiteKind.STATEMENT:
        return Gap(start=site.start, end=site.end, whole_lines=True), None
    if site.kind is SiteKind.ASSIGNMENT and targets:
        before = f"{_one_of(targets, rng)} = "
        grammar = grammar_of("expression", scope, modules=modules)
        if modules and rng.random() < calls:
            module = _one_of(tuple(modules), rng)
            before += f"{module}."
            grammar = call_grammar(scope, module=module, modules=modules)
        return Gap(start=site.start, end=site.end, before=before, after=after), grammar
    if site.kind in (SiteKind.GAP, SiteKind.ASSIGNMENT):
        return Gap(start=site.start, end=site.end, after=after, whole_lines=True), None
    replacing = _replacing(site, scope, modules) if scope.arrays else None
    return Gap(start=site.start, end=site.end), replacing


def line_gap(name: str, text: str, span: tuple[int, int], rng: np.random.Generator) -> Gap:
    """Return a gap in a file of any language: a line of code, or the place before one."""
    tokens = (each.start for each in tokens_of(name, text) if span[0] <= each.start < span[1])
    starts = sorted({text.rfind("\n", 0, start) + 1 for start in tokens})
    if not starts:
        return last_gap(text, span[1])
    start = starts[int(rng.integers(len(starts)))]
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    line = text[start:end]
    indentation = line[: len(line) - len(line.lstrip())]
    first = start + len(indentation)
    if rng.random() < _REPLACED_LINES:
        return Gap(start=first, end=end, whole_lines=True)
    return Gap(start=first, end=first, after=f"\n{indentation}", whole_lines=True)


def last_gap(text: str, end: int) -> Gap:
    """Return a gap at the end of what has no other place, such as ``run = lambda x: x``."""
    before = "\n" if text[:end] and not text[:end].endswith("\n") else ""
    return Gap(start=end, end=end, before=before, after="\n", whole_lines=True)


def _modules(tree: ast.Module, *, line: int) -> dict[str, str]:
    """Return the modules with functions that can be read on ``line``: local name to path."""
    names = imported_at(tree, line=line)
    known = known_modules(tree)
    return {name: path for name, path in known.items() if name in names and functions_of(path)}


def _replacing(site: Site, scope: Scope, modules: Mapping[str, str]) -> str | None:
    """Return the grammar for what takes the place of an expression: something of its kind."""
    assert isinstance(site.node, ast.expr)
    whole = is_integer(site.node, set(scope.integers))
    if site.kind is SiteKind.EXPRESSION:
        return grammar_of("count" if whole else "expression", scope, modules=modules)
    constant = site.node.operand if isinstance(site.node, ast.UnaryOp) else site.node
    value = constant.value if isinstance(constant, ast.Constant) else None
    if isinstance(value, bool):
        return grammar_of("truth", scope, modules=modules)
    if isinstance(value, int | float):
        return grammar_of("integer" if whole else "number", scope, modules=modules)
    return None


def _one_of(names: tuple[str, ...], rng: np.random.Generator) -> str:
    return names[int(rng.integers(len(names)))]


def _indentation(program: str, position: int) -> str:
    line = source_lines(program[:position])[-1]
    return line[: len(line) - len(line.lstrip())]

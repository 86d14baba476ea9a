"""Variants of the operator ``infill`` for the experiment ``places``."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from engine.prompts.infill import Infill
from engine.syntax.blocks import File
from engine.syntax.places import Site, SiteKind, find_sites


class Everywhere(Infill):
    """Fills places in code that nothing reaches too."""

    def sites(self, file: File, tree: ast.Module, span: tuple[int, int]) -> Sequence[Site]:
        """See `Infill.sites`."""
        return [s for s in find_sites(file.text, tree) if span[0] <= s.start and s.end <= span[1]]


class Numbers(Infill):
    """Fills twice as many numbers, for half as many expressions and free statements."""

    kinds: Mapping[SiteKind, float] = {
        SiteKind.CONSTANT: 4.0,
        SiteKind.EXPRESSION: 0.5,
        SiteKind.STATEMENT: 0.25,
        SiteKind.GAP: 0.25,
        SiteKind.ASSIGNMENT: 2.5,
    }

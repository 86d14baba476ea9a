"""A figure: a Vega-Lite specification beside the rows that it draws, and what it says in words."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.report.analysis.figures import Table

Row = Mapping[str, Any]
Spec = dict[str, Any]

WIDTH = 640
"""Pixels of a figure whose page does not say how wide it is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A figure as a page, a file or a screen reader has it.

    Attributes:
        name: of its file; unique among the figures of a run.
        title: what it shows, in a line.
        alt: what can be seen in it, in words.
        note: what has to be known to read it; empty if nothing.
        spec: Vega-Lite; its data have names, and its width is its container's.
        data: what it draws, thinned, by those names.
        table: the numbers behind it, for those who can't or won't see it.
    """

    name: str
    title: str
    alt: str
    note: str = ""
    spec: Spec
    data: Mapping[str, Sequence[Row]]
    table: Table

    def whole(self, *, width: int = WIDTH) -> Spec:
        """Return the specification with its data in it, and a width in pixels."""
        spec = copy.deepcopy(self.spec)
        spec["width"] = width
        spec["datasets"] = {name: [dict(row) for row in rows] for name, rows in self.data.items()}
        return spec

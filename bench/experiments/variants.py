"""Variants of the operator ``infill`` for the experiment ``places``."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.core import Block, Gap, Part
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


class Shown(Infill):
    """Says, in a comment above a place, what stood there."""

    _comment, _at = "", 0  # of the request that is composed now, and where its last line begins

    def _chosen(self, parent: str, rng: np.random.Generator) -> tuple[Gap, str | None]:
        gap, grammar = super()._chosen(parent, rng)
        old = " ".join(parent[gap.start : gap.end].split())
        self._comment = f"{self.form.comment} not {old}\n" if 0 < len(old) <= 80 else ""
        return gap, grammar

    def block(self, part: Part, text: str, *, shows: tuple[str, ...] = ()) -> Block:
        """See `Operator.block`."""
        if part is Part.ASK and not text.endswith("\n"):  # else an earlier part of the request
            self._at = text.rfind("\n") + 1
            text = self._with_comment(text)
        return super().block(part, text, shows=shows)

    def _next_token(self, ask: Block, *, unchanged: str) -> tuple[int, ...]:
        return super()._next_token(ask, unchanged=self._with_comment(unchanged))

    def _with_comment(self, text: str) -> str:
        line = text[self._at :]
        indentation = line[: len(line) - len(line.lstrip(" "))] if self._comment else ""
        return text[: self._at] + indentation + self._comment + line


class Near(Infill):
    """Keeps up to three digits of a number, so that what is written is near it."""

    def _python_gap(
        self, file: File, span: tuple[int, int], rng: np.random.Generator
    ) -> tuple[Gap, str | None]:
        gap, grammar = super()._python_gap(file, span, rng)
        kept = int(rng.integers(4))
        if gap.before or gap.after or gap.whole_lines or not kept:
            return gap, grammar
        found = _rest(file.text[gap.start : gap.end], kept)
        if found is None:
            return gap, grammar
        start, end, rest = found
        return replace(gap, start=gap.start + start, end=gap.start + end), rest


_DECIMAL = re.compile(r"-?([0-9]+)(\.[0-9]*)?([eE][-+]?[0-9]+)?")


def _rest(number: str, kept: int) -> tuple[int, int, str] | None:
    """Return start and end of what is written anew in a decimal number, and a grammar for it.

    None where no digit can be kept: of text that is no such number, of zero, of one digit. An
    exponent stays as it is.
    """
    match = _DECIMAL.fullmatch(number)
    if match is None:
        return None
    point, end = match.end(1), match.start(3) if match[3] else len(number)
    digits = [at for at in range(end) if number[at].isdigit()]
    first = next((index for index, at in enumerate(digits) if number[at] != "0"), len(digits))
    digits = digits[first:]
    if match[2] is None:
        kept = min(kept, len(digits) - 1)
    if kept < 1 or not digits:
        return None
    start = digits[min(kept, len(digits)) - 1] + 1
    fraction = "[0-9] [0-9]? [0-9]?"
    if match[2] is None:
        rest = " ".join(["[0-9]"] * (end - start))
    elif start < point:
        rest = " ".join(["[0-9]"] * (point - start)) + f' "." {fraction}'
    else:
        start, rest = max(start, point + 1), fraction
    return start, end, f'root ::= {rest} "\\n"\n'

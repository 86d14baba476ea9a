"""The steps to the best program, each as a diff from its parent."""

import ast
import difflib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import PythonLexer, TextLexer, get_lexer_by_name

from engine.core.bundle import is_bundle, sections_of
from engine.report.page.text import cut, shown
from engine.syntax.plain import language_of

_CONTEXT = 3  # unchanged lines around a change
_LONGEST_LINE = 400  # characters of a line that are shown
_LONGEST_TEXT = 200_000  # characters of a program that are compared
_FEWEST_LINES = 20  # of a diff that are shown
_MOST_STEPS = 60  # of a path; more are told by their first and last ones
_WHOLE = {"stripnl": False, "ensurenl": False}  # options of a lexer that drops no line
_PLAIN = TextLexer(**_WHOLE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A line of a diff.

    Attributes:
        kind: ``same``, ``added``, ``removed``, or ``gap`` for lines that are left out.
        before: its number in the parent; None if it is not there.
        after: its number in the child, likewise.
        html: its text, highlighted and escaped.
    """

    kind: str
    before: int | None = None
    after: int | None = None
    html: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A program of the best path, and how it differs from its parent.

    Attributes:
        row: of `engine.report.tables.programs`.
        lines: of the diff; the whole program for the first one.
        added: lines that are new.
        removed: lines that are gone.
        is_cut: whether the diff goes on.
    """

    row: Mapping[str, Any]
    lines: Sequence[Line]
    added: int
    removed: int
    is_cut: bool


def steps_of(path: Sequence[Mapping[str, Any]], *, room: int) -> list[Step]:
    """Return the steps of a path; of a very long one the first and the last ones.

    Args:
        path: rows of `engine.report.tables.programs`, each the parent of the next.
        room: lines that all diffs together have, about.
    """
    places = list(range(len(path)))
    if len(places) > _MOST_STEPS:
        places = [*places[: _MOST_STEPS // 2], *places[-_MOST_STEPS // 2 :]]
    most = max(_FEWEST_LINES, room // max(1, len(places)))
    return [_step(path[place], path[place - 1] if place else None, most) for place in places]


def _step(row: Mapping[str, Any], parent: Mapping[str, Any] | None, most: int) -> Step:
    before = "" if parent is None else _text(parent)
    lines = list(diff(before, _text(row)))
    return Step(
        row=row,
        lines=lines[:most],
        added=sum(line.kind == "added" for line in lines),
        removed=sum(line.kind == "removed" for line in lines),
        is_cut=len(lines) > most,
    )


def _text(row: Mapping[str, Any]) -> str:
    return cut(shown(row["program"] or ""), _LONGEST_TEXT)


def diff(before: str, after: str) -> Iterator[Line]:
    """Yield the lines of a diff between two texts that `shown` returned."""
    before, after = before.removesuffix("\n"), after.removesuffix("\n")
    if before == after:
        return
    old, new = before.split("\n") if before else [], after.split("\n")
    old_html, new_html = _highlighted(before), _highlighted(after)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > 1000)
    last = 0
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        if group[0][3] > last:
            yield Line(kind="gap")
        for kind, old_from, old_to, new_from, new_to in group:
            if kind == "equal":
                for shift in range(new_to - new_from):
                    yield Line(
                        kind="same",
                        before=old_from + shift + 1,
                        after=new_from + shift + 1,
                        html=new_html[new_from + shift],
                    )
                continue
            for place in range(old_from, old_to):
                yield Line(kind="removed", before=place + 1, html=old_html[place])
            for place in range(new_from, new_to):
                yield Line(kind="added", after=place + 1, html=new_html[place])
        last = group[-1][4]
    if last < len(new):
        yield Line(kind="gap")


def _highlighted(text: str) -> list[str]:
    """Return the lines of a program as markup: escaped, with a class for each token."""
    lines = [cut(line, _LONGEST_LINE) for line in text.split("\n")]
    if not is_bundle(text):
        return _markup(lines, _lexer(text))
    headings = [place for place, line in enumerate(lines) if is_bundle(line)]
    found: list[str] = []
    for start, end in pairwise([*headings, len(lines)]):
        ((name, _),) = sections_of(f"{lines[start]}\n")[1]
        content = lines[start + 1 : end]
        found += _markup(lines[start : start + 1], _PLAIN)
        found += _markup(content, _lexer("\n".join(content), language=language_of(name)))
    return found


def _markup(lines: Sequence[str], lexer: Lexer) -> list[str]:
    found: list[str] = highlight("\n".join(lines), lexer, HtmlFormatter(nowrap=True)).split("\n")
    return [*found, *[""] * (len(lines) - len(found))][: len(lines)]


def _lexer(text: str, *, language: str = "python") -> Lexer:
    """Return what finds the tokens of a text; of Python, if it is Python."""
    if language != "python":
        return get_lexer_by_name(language, **_WHOLE)
    try:
        with warnings.catch_warnings(action="ignore"):  # of a candidate's escape sequences
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _PLAIN
    return PythonLexer(**_WHOLE)

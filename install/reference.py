"""Writes docs/reference.md: every key of a run's settings, as the settings themselves have it.

Types and bounds are those that pydantic checks, meanings the docstrings of the sections, defaults
those of engine/conf. A key without a meaning is an error. Usage: python -m install.reference.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from engine.config import GROUPS, composed, options
from engine.prompts import OPERATORS
from engine.registry import Policies, Policy
from engine.search.cells import CELLS
from engine.search.inspirations import INSPIRATIONS
from engine.search.mixes import MIXES
from engine.search.novelty import NOVELTY
from engine.search.parents import PARENTS
from engine.search.schedules import SCHEDULES
from engine.search.topologies import TOPOLOGIES
from engine.search.widths import WIDTHS
from engine.settings import RunSettings

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
POLICIES: Mapping[str, Policies[Any]] = {
    "search.parent": PARENTS,
    "search.mix": MIXES,
    "search.cells": CELLS,
    "search.novelty": NOVELTY,
    "search.inspirations": INSPIRATIONS,
    "width": WIDTHS,
    "islands.topology": TOPOLOGIES,
    "islands.schedule": SCHEDULES,
}
"""Where a policy is chosen, and among which."""

_HEAD = """# Configuration

<!-- Written by `python -m install.reference`; a test compares. -->

Every key of a run, as `python -m engine.run KEY=VALUE ...` takes it. A key that does not exist is
refused in one line that names the nearest one, a name that a group lacks in one that lists the
others. `null` is no value.

A group sets many keys at once. What is given beside it takes its place. Below a key's default
stands what groups make of it. `problem.path=FOLDER` takes the place of `problem=`, and
`model.path=FOLDER` without `model=` chooses `model=derived`.

"""
_POLICIES = """## Policies

Each is chosen by its name, and its parameters stand beside it, as in
`search.parent.policy=hybrid search.parent.p_elite=0.1`. One of another package is named as
`module:Class` ([how](search.md#policies)).

"""
_OPERATORS = """## Operators

`search.operators.NAME=WEIGHT` puts one into the mix ([what they ask for](prompts.md#operators)).
One of another package is named as `search.operators.module:Class=WEIGHT`.

"""
_COLUMNS = "| key | value | default | meaning |\n|---|---|---|---|\n"
_LARGE = 1 << 63


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key of the settings.

    Attributes:
        name: in full, with dots.
        schema: of its value, as JSON Schema has it.
        default: its value where nothing is given.
        meaning: what its section's docstring says of it.
        groups: the values that groups give it, by ``group=name``; without those of the default.
    """

    name: str
    schema: Mapping[str, Any]
    default: object
    meaning: str
    groups: Mapping[str, object]

    @property
    def row(self) -> str:
        """Its line in a table."""
        nullable = None in (self.default, *self.groups.values())
        value = type_of(self.schema, nullable=nullable)
        given: dict[str, list[str]] = {}
        for group, other in self.groups.items():
            given.setdefault(shown(other), []).append(f"`{group}`")
        changes = "".join(f"<br>{each}: {', '.join(by)}" for each, by in given.items())
        return f"| `{self.name}` | {value} | {shown(self.default)}{changes} | {self.meaning} |\n"


def page() -> str:
    """Return the reference, as Markdown."""
    names = {group: options(group) for group in GROUPS}
    lines = [f"| `{group}=` | {', '.join(f'`{e}`' for e in names[group])} |\n" for group in GROUPS]
    parts = [_HEAD, "| group | names |\n|---|---|\n", *lines, "\n"]
    defaults = composed([])
    chosen = {
        f"{group}={name}": composed([f"{group}={name}"])
        for group in GROUPS
        for name in names[group]
        if group != "problem"
    }
    for title, said, keys in _sections(RunSettings, "", defaults, chosen):
        parts += [f"## {title}\n\n{said}\n\n", _COLUMNS, *(key.row for key in keys), "\n"]
    parts.append(_POLICIES)
    for at, policies in POLICIES.items():
        default = composed([])
        for name in at.split("."):
            default = default[name]
        parts.append(f"### {at}.policy\n\nDefault: {shown(default and default['policy'])}.\n\n")
        parts += [_policy(at, name, policies) for name in policies.names]
    parts += [_OPERATORS, "| operator | what it does |\n|---|---|\n"]
    for name in OPERATORS.names:
        parts.append(f"| `{name}` | {said_of(OPERATORS.find(name, given='operators'))} |\n")
    return "".join(parts).rstrip() + "\n"


def _sections(
    kind: type, prefix: str, defaults: Any, chosen: Mapping[str, Any]
) -> Iterator[tuple[str, str, list[Key]]]:
    """Yield a section's title, what it is for and its keys, then those of the sections in it."""
    schema = TypeAdapter(kind).json_schema()["properties"]
    meanings = attributes(kind)
    keys: list[Key] = []
    inner: list[tuple[Any, str, Any, dict[str, Any]]] = []
    for name, hint in get_type_hints(kind).items():
        full = f"{prefix}{name}"
        if full in ("problem", "model.name") or full in POLICIES:  # a group, a preset's, a policy
            continue
        values = {group: value[name] for group, value in chosen.items()}
        if is_dataclass(hint):
            inner.append((hint, f"{full}.", defaults[name], values))
            continue
        if name not in meanings:
            raise ValueError(f"{kind.__name__}.{name} has no meaning: add it to the docstring")
        default = defaults[name]
        keys.append(
            Key(
                name=full,
                schema=schema[name],
                default=default,
                meaning=meanings[name],
                groups={group: value for group, value in values.items() if value != default},
            )
        )
    if keys:
        yield prefix.removesuffix(".") or "The run", said_of(kind), keys
    for hint, full, default, values in inner:
        yield from _sections(hint, full, default, values)


def _policy(at: str, name: str, policies: Policies[Any]) -> str:
    """Return a policy and its parameters."""
    found: type[Policy] = policies.find(name, given=at)
    module = inspect.getmodule(found)
    lines = f"**`{name}`**: {said_of(module)}\n\n"
    schema, meanings = TypeAdapter(found).json_schema()["properties"], attributes(found)
    own = [each for each in schema if each != "policy"]
    for each in own:
        default = schema[each]["default"]
        key = Key(
            name=f"{at}.{each}",
            schema=schema[each],
            default=default,
            meaning=meanings[each],
            groups={},
        )
        lines += (_COLUMNS if each == own[0] else "") + key.row
    return f"{lines}\n" if own else lines


def attributes(kind: type) -> dict[str, str]:
    """Return what a class's docstring says of its attributes, by name, as Markdown."""
    _, _, listed = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    entries = re.findall(r"^ {4}(\w+): ((?:.+\n?(?: {8}.*\n?)*))", listed, flags=re.MULTILINE)
    return {name: markdown(text) for name, text in entries}


def said_of(documented: type | ModuleType | None) -> str:
    """Return the first paragraph of what a docstring says, as Markdown."""
    paragraph = (inspect.getdoc(documented) or "").partition("\n\n")[0]
    name, colon, rest = paragraph.partition(": ")
    is_name = bool(colon) and re.fullmatch(r"[\w-]+", name) is not None
    return markdown(rest if is_name else paragraph)


def markdown(text: str) -> str:
    """Return a docstring's words as a line of Markdown, in the words of a command line."""
    line = " ".join(text.split()).replace("``", "`").replace("|", "\\|")
    words = re.split(r"(`[^`]*`)", line)
    for at in range(0, len(words), 2):  # outside of code
        for python, typed in (("None", "`null`"), ("True", "`true`"), ("False", "`false`")):
            words[at] = re.sub(rf"\b{python}\b", typed, words[at])
    return "".join(words)


def shown(value: object) -> str:
    """Return a value as it is typed."""
    if isinstance(value, bool) or value is None:
        return f"`{ {True: 'true', False: 'false', None: 'null'}[value] }`"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key}: {each:g}" for key, each in value.items() if each)
        return f"`{ {} }`" if not inner else f"`{{{inner}}}`"
    return f"`{value}`"


def type_of(schema: Mapping[str, Any], *, nullable: bool = False) -> str:
    """Return what values JSON Schema lets a key have, in words; with null if it is so besides."""
    either = schema.get("anyOf", [schema])
    said = [_one_type(each) for each in either if each.get("type") != "null"]
    null = nullable or len(said) < len(either)
    return ", or ".join([*said, *(["`null`"] if null else [])])


def _one_type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema["type"] == "object":
        return "a mapping"
    if schema["type"] == "array":
        return "a list"
    if schema["type"] == "boolean":
        return "`true`, `false`"
    if schema["type"] == "string":
        return "text"
    bounds = [
        f"{word} {_number(schema[key])}"
        for key, word in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "below"),
        )
        if key in schema
    ]
    kind = "a whole number" if schema["type"] == "integer" else "a number"
    return ", ".join([kind, " and ".join(bounds)] if bounds else [kind])


def _number(bound: float) -> str:
    return f"2^{_LARGE.bit_length() - 1}" if bound == _LARGE else f"{bound:,}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""A section of the settings: a frozen value whose keys, types and bounds pydantic checks.

A section is a dataclass that derives from `Section` and is decorated by `section`. So it is checked
wherever it is made, by ``dataclasses.replace`` too.

Covers: what all sections share, and what is wrong with one in a line. Does not cover which
sections there are: ``engine.settings``.
"""

import dataclasses
import difflib
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar, cast, dataclass_transform, get_args, get_type_hints

from pydantic import ConfigDict, Field, Strict, ValidationError, model_validator
from pydantic.dataclasses import dataclass

Flag = Annotated[bool, Strict()]
Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]
"""Finite, as `section` has it; a whole number will do."""
Share = Annotated[Number, Field(ge=0, le=1)]
Count = Annotated[Whole, Field(ge=1)]
MOST_TOKENS = 1 << 24
Tokens = Annotated[Whole, Field(ge=0, le=MOST_TOKENS)]
Gigabytes = Annotated[Number, Field(ge=0.1)]
Text = Annotated[str, Field(min_length=1)]

_MUST_BE = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_type": "a finite number",
    "greater_than": "above {gt}",
    "greater_than_equal": "{ge} or more",
    "int_type": "a whole number",
    "less_than": "below {lt}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "string_too_short": "text, and not empty",
    "string_type": "text",
    "tuple_type": "a list, as in [A,B]",
}
"""By pydantic's types of errors."""
_LONGEST = 200  # characters of a value that a message shows


T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(Field,))
def section(kind: type[T]) -> type[T]:
    """Return a class as a frozen dataclass that pydantic checks when it is first made."""
    config = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)
    made = dataclass(frozen=True, kw_only=True, slots=True, config=config)(kind)
    return cast(type[T], made)


@section
class Section:
    """What all sections share: a key that they don't have is refused."""

    @model_validator(mode="before")
    @classmethod
    def _knows_its_keys(cls, given: Any) -> Any:
        keys = _keys(cls)
        unknown = sorted(set(map(str, given)) - set(keys)) if isinstance(given, dict) else []
        if unknown:
            raise ValueError(f"{unknown[0]} is no key; {valid_keys(unknown[0], keys)}")
        return given


def require(holds: bool, key: str, value: object, must_be: str) -> None:
    """Refuse a value of a section, in a validator of the section.

    Args:
        holds: whether the value is taken.
        key: its name in the section.
        value: as it was given.
        must_be: what is taken; it names keys of other sections in full.

    Raises:
        ValueError: it is not taken.
    """
    if not holds:
        raise ValueError(f"{key} is {shown(value)}; it must be {must_be}")


def valid_keys(key: str, valid: Sequence[str]) -> str:
    """Return the end of a line on an unknown key: the valid one that is meant, and all."""
    return f"{did_you_mean(key, valid)}valid keys: {', '.join(valid)}"


def did_you_mean(name: str, valid: Sequence[str]) -> str:
    """Return a question for the valid name that is most like another one; nothing if none is."""
    close = difflib.get_close_matches(name, valid, n=1)
    return f"did you mean {close[0]}? " if close else ""


def in_a_line(error: ValidationError, *, kind: type) -> str:
    """Return the key, the value and what it must be, of the first thing wrong with a section.

    Args:
        error: what pydantic said of it.
        kind: the section's.
    """
    first = error.errors(include_url=False)[0]
    names = [str(each) for each in first["loc"]]
    key, context = ".".join(names), first.get("ctx", {})
    if first["type"] == "value_error":  # of a section's own validator, which names the key
        return ".".join([*names, str(context["error"])])
    if first["type"] == "missing":
        return f"{key} is missing"
    hint = _hint(kind, names)
    if first["type"] == "dataclass_type":
        (expected,) = filter(dataclasses.is_dataclass, (hint, *get_args(hint)))
        must_be = f"a mapping with the keys {', '.join(_keys(expected))}"
        return f"{key or 'what was read'} is {shown(first['input'])}; it must be {must_be}"
    bounds = {name: str(value).removesuffix(".0") for name, value in context.items()}
    must_be = _MUST_BE.get(first["type"], first["msg"]).format(**bounds)
    null = ", or null" if type(None) in get_args(hint) else ""
    return f"{key} is {shown(first['input'])}; it must be {must_be}{null}"


def _hint(kind: Any, names: Sequence[str]) -> Any:
    """Return the type of what stands under some names in a section; None where it has no names."""
    for name in names:
        kind = get_type_hints(kind).get(name) if dataclasses.is_dataclass(kind) else None
    return kind


def _keys(section: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(section)]


def shown(value: object) -> str:
    """Return a value as a message shows it."""
    return repr(value)[:_LONGEST]

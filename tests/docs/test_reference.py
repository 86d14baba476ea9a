"""The reference of the settings: it is what the settings say."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field, TypeAdapter

from engine.section import Section, Share, Whole, section
from engine.settings import RunSettings
from install.reference import PAGE, attributes, markdown, page, shown, type_of


@section
class Some(Section):
    """Some settings.

    Attributes:
        whole: a number; None for
            none, or ``both``.
        share: a share.
    """

    whole: Annotated[Whole, Field(ge=1, lt=1 << 63)] | None
    share: Share


def test_the_page_is_what_the_settings_give() -> None:
    assert PAGE.read_text() == page(), "run python -m install.reference"


def test_every_key_has_a_meaning() -> None:
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    keys = [row for row in rows if len(row) == 4]
    assert len(keys) > 90
    assert all(row[3].removesuffix(" |").strip() for row in keys)


def test_a_meaning_is_what_the_docstring_says() -> None:
    found = attributes(Some)
    assert found == {"whole": "a number; `null` for none, or `both`.", "share": "a share."}
    assert attributes(RunSettings)["seed"] == "from which all random choices of the run derive."
    assert markdown("``None`` | and None") == "`None` \\| and `null`"


def test_bounds_are_those_that_are_checked() -> None:
    schema = TypeAdapter(Some).json_schema()["properties"]
    assert type_of(schema["whole"]) == "a whole number, at least 1 and below 2^63, or `null`"
    assert type_of(schema["share"]) == "a number, at least 0 and at most 1"
    assert type_of(schema["share"], nullable=True).endswith(", or `null`")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "`null`"),
        (True, "`true`"),
        (0.5, "`0.5`"),
        ([], "`[]`"),
        ({}, "`{}`"),
        ({"infill": 1.0, "diff": 0.0}, "`{infill: 1}`"),
    ],
)
def test_values_are_shown_as_they_are_typed(value: object, text: str) -> None:
    assert shown(value) == text

"""What the report's page shares with others that look like it: templates, style, scripts."""

import math
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

import vl_convert
from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from engine.report.analysis.figures import Share
from engine.report.page.text import cut, shown

CELL = 300
"""Characters of a cell."""


def asset(name: str) -> str:
    """Return a file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def vega() -> str:
    """Return the script that defines ``vegaEmbed``."""
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def templates(*more: BaseLoader) -> Environment:
    """Return an environment whose templates escape what they are given.

    Args:
        more: where templates are found besides those of this folder.
    """
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=ChoiceLoader([PackageLoader(__package__, "."), *more]),
    )
    environment.filters |= {
        "cell": cell,
        "words": words,
        "shown": lambda text: shown(text),
        "markup": Markup,
    }
    return environment


def cell(value: Any) -> str:
    """Return a value of a table as it is shown."""
    if value is None:
        return "-"
    if isinstance(value, Share):
        return str(value)
    if isinstance(value, bool | str):
        return shown(cut(str(value), CELL))
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.6g}"


def words(key: str) -> str:
    """Return the name of a column as it is shown."""
    return shown(key.replace("_", " "))


def plain(value: Any) -> Any:
    """Return a value as JSON has it: text that can be seen, and no number that is not finite."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, str):
        return shown(cut(value, CELL))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

"""Arguments of a command line: as they are typed, and as Hydra's grammar has them."""

import re
from collections.abc import Iterator, Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from engine.core import UserError

_TEXT_KEYS = (
    "problem.path",
    "model.path",
    "model.cache_dir",
    "cache.folder",
    "cache.server",
    "cache.remote",
    "advisor.endpoint.url",
    "advisor.endpoint.model",
    "pool.sources",
    "data",
    "metric",
    "runs",
    "store",
    "name",
    "opentelemetry",
)


def quoted(text: str) -> str:
    """Return ``text`` as a string of Hydra's grammar, which takes few characters as they are."""
    # A backslash is only special before a quote.
    doubled = re.sub(r"(\\+)(?='|\Z)", r"\1\1", text)
    return "'" + doubled.replace("'", r"\'") + "'"


def parsed(arguments: Sequence[str]) -> list[Override]:
    """Return what each argument says.

    Raises:
        UserError: one is not of the form key=value.
    """
    parser = OverridesParser.create()
    overrides = []
    for argument in arguments:
        try:
            overrides.append(parser.parse_override(_as_text(argument)))
        except (HydraException, ValueError) as error:  # ValueError: an int of thousands of digits
            raise UserError(
                f"{argument[:200]!r} can't be read; arguments have the form key=value, and a value "
                "with spaces, commas or quotes the form \"key='value'\""
            ) from error
    return overrides


def values_of(override: Override) -> Iterator[str]:
    """Yield the values of an argument in Hydra's grammar; a sweep has several."""
    if override.is_discrete_sweep():
        return override.sweep_string_iterator()
    if override.is_sweep_override():
        raise UserError(f"{override.input_line!r} names no values one by one; give KEY=A,B,C")
    return iter([override.get_value_element_as_str()])


def _as_text(argument: str) -> str:
    """Write an argument as Hydra's grammar has it, so that it may be typed as it is.

    Quoted is the value of a key that takes text, such as a path or a name.

    Left alone: what is quoted already, several values for a sweep, ``null`` and interpolations.
    """
    key, _, value = argument.partition("=")
    path, _, operator = key.partition("search.operators.")
    if not path and ":" in operator:  # module:Class, of which Hydra's grammar makes no key
        escaped = operator.replace(":", "\\:")
        return f"search.operators={{{escaped}: {value}}}"
    plain = value not in ("", "null") and value[0] not in "'\"[{" and not {",", "$"} & set(value)
    return f"{key}={quoted(value)}" if key in _TEXT_KEYS and plain else argument

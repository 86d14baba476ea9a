"""The ``key=value`` arguments of a benchmark."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from engine.core import UserError


def read_options(
    arguments: Sequence[str], defaults: Mapping[str, str], *, usage: str
) -> dict[str, str]:
    """Return ``defaults`` with the given ``arguments`` in; ``--help`` prints ``usage`` and exits.

    Raises:
        UserError: an argument is not ``key=value``, or its key is none of ``defaults``.
    """
    if {"-h", "--help"} & set(arguments):
        sys.stdout.write(usage)
        raise SystemExit(0)
    options = dict(defaults)
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or key not in defaults:
            raise UserError(
                f"{argument!r} is no option; there are: {', '.join(defaults)} (KEY=VALUE)"
            )
        options[key] = value
    return options


def model_arguments(options: Mapping[str, str]) -> list[str]:
    """Return what option ``model`` is to ``engine.run``: a preset, or a folder or hub id."""
    model = options["model"]
    return [f"model.path={model}" if set("/.~") & set(model) else f"model={model}"]


def number(options: Mapping[str, str], key: str) -> float:
    """Return option ``key`` as a number above 0.

    Raises:
        UserError: it is something else.
    """
    try:
        value = float(options[key])
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UserError(f"{key}={options[key]} is no number above 0")
    return value

"""A benchmark as a command: its ``key=value`` arguments, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from engine.arguments import execute
from engine.core import UserError


def run_as_command(main: Callable[[list[str]], int | None]) -> NoReturn:
    """Run a benchmark on this process's arguments, and end with its exit code.

    Bad input is one line on standard error, and 2. ``--help`` prints the docstring of the module
    that has ``main``.
    """
    usage = sys.modules[main.__module__].__doc__ or ""
    sys.exit(execute(lambda given: main(given.rest) or 0, sys.argv[1:], keys=(), usage=usage))


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


def whole_number(options: Mapping[str, str], key: str, *, least: int = 1) -> int:
    """Return option ``key`` as a whole number, ``least`` or more.

    Raises:
        UserError: it is something else.
    """
    text = options[key]
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) >= least):
        raise UserError(f"{key}={text} is no whole number, {least} or more")
    return int(text)


def whole_numbers(options: Mapping[str, str], key: str, *, least: int = 1) -> list[int]:
    """Return option ``key``, which has commas between them, as `whole_number` does."""
    return [whole_number({key: each}, key, least=least) for each in options[key].split(",")]

"""Command lines of ``key=value`` options, in Hydra's way.

The options of a run are read by ``engine.config``.
"""

import errno
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from engine.core import UserError
from engine.terminal import BAD_INPUT, complain, guarded

_REFUSED = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)
"""What the system says of a path that this user may not use, or that nothing can have."""


class Arguments(NamedTuple):
    """A command line: its options by key, and the rest."""

    options: dict[str, str]
    rest: list[str]

    def number(self, key: str, default: int) -> int:
        """Return an option as a whole number above 0.

        Raises:
            UserError: it is something else.
        """
        text = self.options.get(key, str(default))
        if not (text.isascii() and text.isdecimal() and len(text) < 9 and int(text) > 0):
            raise UserError(f"{key} is {text[:20]!r}; it must be a whole number above 0")
        return int(text)

    def flag(self, key: str) -> bool:
        """Return an option that is true or false, and false where it is not given.

        Raises:
            UserError: it is neither.
        """
        text = self.options.get(key, "false")
        if text not in ("true", "false"):
            raise UserError(f"{key} is {text[:20]!r}; it must be true or false")
        return text == "true"


def execute(
    command: Callable[[Arguments], int],
    arguments: Sequence[str],
    *,
    keys: Sequence[str],
    usage: str,
) -> int:
    """Run a command and return its exit code; bad input is one line on standard error, and 2.

    An argument with none of ``keys`` is one of the rest: a folder's name may hold an equals sign.
    ``--help`` prints ``usage``. Ctrl-C, an output that nobody reads and a path that the system
    refuses end it without a traceback.
    """
    return guarded(partial(_execute, command, arguments, keys=keys, usage=usage))


def _execute(
    command: Callable[[Arguments], int],
    arguments: Sequence[str],
    *,
    keys: Sequence[str],
    usage: str,
) -> int:
    if {"--help", "-h"} & set(arguments):
        sys.stdout.write(usage)
        return 0
    options: dict[str, str] = {}
    rest = []
    try:
        for argument in arguments:
            key, equals, value = argument.partition("=")
            if not equals or key not in keys:
                rest.append(argument)
            elif key in options:
                raise UserError(f"{key}= is given twice")
            else:
                options[key] = value
        return command(Arguments(options, rest))
    except UserError as error:
        complain(f"error: {error}")
        return BAD_INPUT
    except OSError as error:
        if error.errno not in _REFUSED or error.filename is None:
            raise
        complain(
            f"error: {error.filename} can't be used: {error.strerror}; give another path, or the "
            "right to use it"
        )
        return BAD_INPUT

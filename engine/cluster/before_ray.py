"""What has to be there before Ray is imported: Ray, and what it reads from the environment then."""

import os
from importlib.util import find_spec
from pathlib import Path

from engine.core import UserError

TOKEN = Path("~/.ray/auth_token")
"""Where Ray looks for the token between machines if neither of `_GIVEN` is set."""
_GIVEN = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_MODE = "RAY_AUTH_MODE"


def prepare_ray() -> None:
    """Have Ray use the token, if there is one, and send no usage statistics to anybody.

    Raises:
        UserError: Ray is not installed.
    """
    if find_spec("ray") is None:
        raise UserError("cluster=ray needs Ray; install brood with its extra: brood[cluster]")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if has_token():
        os.environ.setdefault(_MODE, "token")


def has_token() -> bool:
    """Whether there is a token here."""
    return any(os.environ.get(name) for name in _GIVEN) or TOKEN.expanduser().is_file()


def wants_token() -> bool:
    """Whether machines that are started from here are to have one."""
    return os.environ.get(_MODE, "token") == "token"

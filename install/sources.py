"""Where packages come from: uv is made to look where pip is configured to look.

uv reads neither pip's configuration files nor its PIP_* variables, so they are handed over as
uv's own variables. What the user has set for uv itself is left alone.
"""

import ast
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from install.checks import SetupError

# pip's option -> uv's variable, and what stands between several values there.
_VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
}
# pip lets a later one of these win over an earlier one.
_SECTIONS = ("global.", "install.", ":env:.")


@dataclass(frozen=True, kw_only=True)
class Sources:
    """How to call uv: the variables to set, and the arguments for what it has no variable for."""

    environ: Mapping[str, str]
    arguments: tuple[str, ...]


def pip_options(listing: str) -> dict[str, str]:
    """The options in force, from what `pip config list` prints (lines such as global.cert='x')."""
    options: dict[str, str] = {}
    for section in _SECTIONS:
        for line in listing.splitlines():
            name, _, value = line.partition("=")
            if name.startswith(section) and value:
                options[name.removeprefix(section)] = str(ast.literal_eval(value))
    return options


def uv_sources(options: Mapping[str, str], environ: Mapping[str, str]) -> Sources:
    """`environ` with pip's `options` added in uv's words wherever uv has no setting of its own."""
    result = dict(environ)
    for option, (variable, separator) in _VARIABLES.items():
        if option in options and not result.get(variable):
            result[variable] = separator.join(options[option].split())
    if "extra-index-url" in options:
        # pip takes the best version of all indexes, uv by default looks no further than the first
        # index that has the package at all, in whatever version.
        result.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    no_index = options.get("no-index", "0").lower() not in ("0", "false", "no", "off")
    return Sources(environ=result, arguments=("--no-index",) if no_index else ())


def read_sources(python: Path, environ: Mapping[str, str]) -> Sources:
    """How to call uv so that it finds what the pip of `python` would find.

    Raises:
        SetupError: pip can't read its own configuration.
    """
    command = [str(python), "-m", "pip", "config", "list"]
    listing = subprocess.run(command, env=environ, capture_output=True, text=True)
    if listing.returncode:
        raise SetupError(f"pip can't read its configuration: {listing.stderr.strip()}")
    return uv_sources(pip_options(listing.stdout), environ)

"""Brood: an engine for LLM-guided program search that owns the inference stack.

`Run` searches, `Problem` is what it searches for, `Engine` and `fanout` are the model without a
search; docs/api.md is their manual.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.api.engine import Engine, fanout
    from engine.api.run import Run
    from engine.core import Problem

    __version__: str

_WHERE = {
    "Engine": "engine.api.engine",
    "Problem": "engine.core",
    "Run": "engine.api.run",
    "fanout": "engine.api.engine",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is: scoring a program needs none of it."""
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("brood")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

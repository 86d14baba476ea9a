"""Brood: an engine for LLM-guided program search that owns the inference stack.

`engine.Run` is the Python API: it starts, resumes and runs a search.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.assembly import Run

    __version__: str


def __getattr__(name: str) -> Any:
    """Look `Run` and the version up when asked for: scoring a program needs neither."""
    if name == "Run":
        from engine.assembly import Run

        return Run
    if name == "__version__":
        from importlib.metadata import version

        return version("brood")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

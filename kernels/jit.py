"""How the kernels of this package are compiled.

Covers: one decorator with the package's compile options, typed so that ``mypy --strict`` sees
the decorated function's own signature. Does not cover GPU kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` to machine code at its first call.

    The code is cached on disk, so that only the first process pays for it, and runs without the
    GIL, so that scoring does not hold up the threads that generate.
    """
    compiled: Callable[P, R] = numba.njit(cache=True, nogil=True)(function)
    return compiled

"""How the kernels of this package are compiled.

Covers: one decorator with the package's compile options, typed so that ``mypy --strict`` sees
the decorated function's own signature. Does not cover GPU kernels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Kernel(Generic[P, R]):
    """A function that is compiled when it is first called, here or in another kernel.

    So a process that only looks at a problem does not load numba. The machine code is cached on
    disk, so that only the first process pays for it, and runs without the GIL, so that scoring does
    not hold up the threads that generate.
    """

    __wrapped__: Callable[P, R]
    __name__: str

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._compiled(*args, **kwargs)

    @functools.cached_property
    def _compiled(self) -> Callable[P, R]:
        import numba

        try:
            compiled = numba.njit(cache=True, nogil=True)(self.__wrapped__)
        except RuntimeError:  # no folder that the cache could be written to
            compiled = numba.njit(nogil=True)(self.__wrapped__)
        return compiled  # type: ignore[no-any-return]

    @property
    def _numba_type_(self) -> Any:
        """What numba takes this object for in a kernel that calls it: the compiled function."""
        from numba import typeof

        return typeof(self._compiled)


def jit(function: Callable[P, R]) -> Kernel[P, R]:
    """Make ``function`` a kernel."""
    return Kernel(function)

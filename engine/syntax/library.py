"""The modules that programs import: whether they have a name, and which functions they have.

Each module and each name is looked up once a process. Does not cover what the functions' arguments
have to be.
"""

import functools
import importlib
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

MOST_ARGUMENTS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Function:
    """A function and the numbers of positional arguments, from 1 to `MOST_ARGUMENTS`, it takes."""

    name: str
    least: int
    most: int


def is_module(path: str) -> bool:
    """Return whether there is a module of this dotted name that may be imported to look at it."""
    return _module(path) is not None


@functools.cache
def has(module: str, attributes: tuple[str, ...]) -> bool:
    """Return whether ``module.a.b`` can be read; submodules may still have to be imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # looking at a deprecated name warns
        value: object = _module(module)
        for index, name in enumerate(attributes, start=1):
            if hasattr(value, name):
                value = getattr(value, name)
            else:
                value = _module(".".join([module, *attributes[:index]]))
                if value is None:
                    return False
    return True


@functools.cache
def _module(path: str) -> ModuleType | None:
    if any(part.startswith("_") for part in path.split(".")):
        return None  # `numpy.f2py.__main__` is a command that runs when it is imported
    try:
        return importlib.import_module(path)
    except ImportError:
        return None


@functools.cache
def functions_of(module: str) -> tuple[Function, ...]:
    """Return the functions of ``module`` that have public lower-case names, sorted by name.

    Functions that take no argument, or need more than `MOST_ARGUMENTS`, are left out. So are
    objects that can be called but are no functions, such as ``numpy.test``, which runs NumPy's own
    tests. A function without a signature counts as one that takes any number.
    """
    namespace = importlib.import_module(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # looking at a deprecated name warns
        found = [
            _function(name, getattr(namespace, name))
            for name in sorted(dir(namespace))
            if name.islower() and not name.startswith("_")
        ]
    return tuple(function for function in found if function is not None)


def _function(name: str, value: object) -> Function | None:
    if not (inspect.isroutine(value) or isinstance(value, np.ufunc)):
        return None
    counts = [count for count in range(1, MOST_ARGUMENTS + 1) if _takes(value, count)]
    return Function(name=name, least=counts[0], most=counts[-1]) if counts else None


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many positional arguments and nothing else."""
    if isinstance(function, np.ufunc):  # its further arguments are outputs
        return count == function.nin
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # written in C, and silent on what it takes
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True

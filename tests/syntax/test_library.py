"""The functions that a grammar offers, held against what the modules say of them."""

from __future__ import annotations

import importlib
import inspect
import itertools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from engine.syntax.library import MOST_ARGUMENTS, Function, functions_of

MODULES = [
    "math",
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "numpy.random",
    "scipy.ndimage",
    "scipy.signal",
    "scipy.special",
]


def listed(module: str) -> dict[str, Function]:
    return {function.name: function for function in functions_of(module)}


def takes(function: Callable[..., Any], count: int) -> bool | None:
    """Whether ``count`` positional arguments are enough and not too many; None: it does not say."""
    if isinstance(function, np.ufunc):
        return count == function.nin
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("module", MODULES)
def test_every_function_takes_as_many_arguments_as_it_is_said_to(module: str) -> None:
    namespace = importlib.import_module(module)
    functions = listed(module)
    assert len(functions) > 10
    for name, function in functions.items():
        value = getattr(namespace, name)
        assert callable(value)
        assert 1 <= function.least <= function.most <= MOST_ARGUMENTS
        for count in range(1, MOST_ARGUMENTS + 1):
            expected = takes(value, count)
            said = function.least <= count <= function.most
            assert expected is None or said is expected, (module, name, count)


@pytest.mark.parametrize("module", MODULES)
def test_sorted_by_name_each_once(module: str) -> None:
    names = [function.name for function in functions_of(module)]
    assert all(first < second for first, second in itertools.pairwise(names))


@pytest.mark.parametrize("module", MODULES)
def test_only_functions_with_public_lower_case_names(module: str) -> None:
    namespace = importlib.import_module(module)
    for name in listed(module):
        assert name.isidentifier()
        assert name == name.lower()
        assert not name.startswith("_")
        assert not isinstance(getattr(namespace, name), type)


@pytest.mark.parametrize(
    ("module", "name", "least", "most"),
    [
        ("numpy", "exp", 1, 1),
        ("numpy", "maximum", 2, 2),
        ("numpy", "mean", 1, MOST_ARGUMENTS),
        ("numpy", "interp", 3, MOST_ARGUMENTS),
        ("numpy", "concatenate", 1, MOST_ARGUMENTS),  # says nothing of what it takes
        ("math", "hypot", 1, MOST_ARGUMENTS),  # takes any number
        ("math", "sqrt", 1, 1),
        ("scipy.ndimage", "gaussian_filter1d", 2, MOST_ARGUMENTS),
        ("scipy.signal", "savgol_filter", 3, MOST_ARGUMENTS),
        ("scipy.signal", "medfilt", 1, 2),
    ],
)
def test_functions_that_everyone_knows(module: str, name: str, least: int, most: int) -> None:
    assert listed(module)[name] == Function(name=name, least=least, most=most)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("numpy", "test"),  # runs NumPy's own tests
        ("scipy.ndimage", "test"),
        ("numpy", "float64"),  # a class
        ("numpy", "pi"),  # a number
        ("numpy", "linalg"),  # a module
        ("numpy", "show_runtime"),  # takes nothing
        ("scipy.signal", "iirdesign"),  # needs four arguments
    ],
)
def test_what_is_left_out(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(module), name)
    assert name not in listed(module)


def test_a_module_without_functions() -> None:
    assert functions_of("numpy.typing") == ()


def test_no_function_is_called_to_learn_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("brood_test_module")
    exec(
        "def none(): raise SystemExit\n"
        "def keywords(a, *, b): raise SystemExit\n"
        "def free(a, *, b=1): raise SystemExit\n"
        "def four(a, b, c, d): raise SystemExit\n"
        "def more(a, b, *rest, c=1, **others): raise SystemExit\n"
        "def default(a=1, b=2, c=3, d=4): raise SystemExit\n"
        "def _hidden(a): raise SystemExit\n"
        "def Upper(a): raise SystemExit\n"
        "class lower:\n"
        "    def __init__(self, a): raise SystemExit\n"
        "    def __call__(self, a): raise SystemExit\n"
        "number = 3\n",
        module.__dict__,
    )
    module.__dict__["object"] = object.__new__(module.__dict__["lower"])
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert functions_of(module.__name__) == (
        Function(name="default", least=1, most=MOST_ARGUMENTS),
        Function(name="free", least=1, most=1),
        Function(name="more", least=2, most=MOST_ARGUMENTS),
    )

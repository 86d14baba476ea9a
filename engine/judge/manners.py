"""What an evaluator tells a program of its objects, and lets it do with them.

A program may call the functions that the evaluator passes to it, and the public methods of objects
whose classes are defined in the problem's folder; it has a copy of their public attributes. Of any
other object it has no more than a reference to give back. No name that begins with an underscore
is looked up, no module, frame or code crosses, and no attribute of a function or a library's
object: from these there would be ways to anything that the evaluator's process can do.
"""

import functools
import sys
from collections.abc import Collection, Mapping
from enum import Enum, EnumType
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    MethodType,
    ModuleType,
    SimpleNamespace,
    TracebackType,
)
from typing import Any

import numpy as np

from engine.judge.proxies import DUNDERS
from engine.judge.values import WireError

_CALLABLE = (FunctionType, BuiltinFunctionType, MethodType, functools.partial, np.ufunc)
_SHOWN = 50  # characters of a name in a message
_SECRET = (ModuleType, FrameType, CodeType, TracebackType)


class EvaluatorManners:
    """Answers what a program asks while it is called."""

    local_attributes = False

    def __init__(self, roots: tuple[Path, ...], *, shared: Collection[str] = ()) -> None:
        """Begin.

        Args:
            roots: the folders whose classes are the problem's own.
            shared: names of the modules that programs may import too.
        """
        self._roots = roots
        self._shared = frozenset(shared)
        self._known: dict[type, bool] = {}

    def dunders(self, kind: type) -> list[str]:
        """Return the special methods of functions and of the problem's own classes."""
        if issubclass(kind, _CALLABLE):
            return ["__call__"]
        if not self._is_own(kind):
            return []
        return sorted(name for name in DUNDERS if getattr(kind, name, None) is not None)

    def attributes(self, value: object) -> Mapping[str, object] | None:
        """Return copies of the public attributes of an object of the problem's own classes."""
        if isinstance(value, _SECRET):
            raise WireError(f"a {type(value).__name__} can't cross")
        if isinstance(value, type):
            if not self._is_own(value):
                raise WireError(f"the type {value.__name__} can't cross")
            return {}
        if isinstance(value, Enum):
            return {"name": value.name, "value": value.value}
        if not self._is_own(type(value)):
            return {}
        slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
        found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        found |= getattr(value, "__dict__", {})
        return {
            name: each for name, each in found.items() if _is_public(name) and self._may_cross(each)
        }

    def plain(self, value: object) -> object:
        """Return an object as it is."""
        return value

    def shares(self, kind: type) -> bool:
        """Return whether a type is of a module that programs may import, and stands in it."""
        module = sys.modules.get(kind.__module__)
        return kind.__module__ in self._shared and getattr(module, kind.__name__, None) is kind

    def member(self, module: str, kind: str, name: str) -> Enum:
        """Return a member of an enumeration of such a module, if that is imported already."""
        found = getattr(sys.modules.get(module), kind, None) if module in self._shared else None
        if isinstance(found, EnumType) and self.shares(found) and name in found.__members__:
            member: Enum = found.__members__[name]
            return member
        raise WireError(f"there is no {kind[:_SHOWN]}.{name[:_SHOWN]} on this side")

    def perform(self, operation: str, *values: Any) -> Any:
        """Do what the program asks, if it may."""
        match operation, values:
            case "call", (target, list() as args, dict() as kwargs):
                if isinstance(target, type) and self._is_own(target):
                    return target(*args, **kwargs)
                if isinstance(target, _CALLABLE) or self._may_call(target):
                    return target(*args, **kwargs)
                raise WireError(f"a {type(target).__name__} can't be called")
            case "method", (target, str() as name, list() as args, dict() as kwargs):
                return self._attribute(target, name)(*args, **kwargs)
            case "attribute", (target, str() as name):
                value = self._attribute(target, name)
                is_method = isinstance(value, MethodType)
                return [is_method, None if is_method else value]
            case "special", (target, str() as name, list() as args):
                if name in DUNDERS and self._is_own(type(target)):
                    return getattr(type(target), name)(target, *args)
        raise WireError(f"no operation {operation[:20]!r} on this object")

    def describe(self, error: BaseException) -> list[Any]:
        """Return type and text of an exception of the evaluator's."""
        return [type(error).__name__, str(error)[:2000], None, ""]

    def _attribute(self, target: object, name: str) -> Any:
        kind = target if isinstance(target, type) else type(target)
        if not _is_public(name) or not self._is_own(kind):
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name[:100]!r}")
        return getattr(target, name)

    def _may_cross(self, value: object) -> bool:
        return not isinstance(value, _SECRET)

    def _may_call(self, target: object) -> bool:
        return self._is_own(type(target)) and callable(target)

    def _is_own(self, kind: type) -> bool:
        if kind not in self._known:
            module = sys.modules.get(kind.__module__)
            file = getattr(module, "__file__", None)
            self._known[kind] = issubclass(kind, SimpleNamespace) or (
                isinstance(file, str)
                and any(Path(file).resolve().is_relative_to(root) for root in self._roots)
            )
        return self._known[kind]


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _is_public(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and not name.startswith("_")

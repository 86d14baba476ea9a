"""The candidate's side: its program, loaded from a text, and what is told of it.

Runs beside the candidate's own code, so nobody trusts it. The text, and the modules of the
problem's folder that a program may import (the *neighbours*), come over the channel; no
file is read.
"""

import asyncio
import importlib
import importlib.abc
import importlib.util
import inspect
import itertools
import linecache
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from importlib.machinery import ModuleSpec
from types import BuiltinMethodType, MethodType, ModuleType
from typing import Any

import numpy as np

from engine.judge.encoding import encode
from engine.judge.link import Link
from engine.judge.proxies import DUNDERS, Raised
from engine.judge.values import WireError

FILENAME = "<program>"
"""The file's name in tracebacks."""

_FRAMES = 6
_MOST_ITEMS = 10_000_000
_CHARACTERS = 2000
_SIGNED = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD,
)


class CandidateManners:
    """Answers whatever an evaluator asks of the program."""

    local_attributes = True

    def __init__(self) -> None:
        """Begin without a program; `link` has to be set."""
        self.link: Link
        self._is_plain = False
        self._watches = False
        self._changed = False

    def dunders(self, kind: type) -> list[str]:
        """Return all that a stand-in may have."""
        return sorted(name for name in DUNDERS if getattr(kind, name, None) is not None)

    def attributes(self, value: object) -> Mapping[str, object] | None:
        """Return None: an evaluator asks for each, as its program may compute it."""
        if isinstance(value, ModuleType):
            raise WireError(f"the module {value.__name__} can't cross")
        return None

    def plain(self, value: object) -> object:
        """Return the array, number or list that an object can be made into, where these are asked.

        Then an evaluator asks once, and not again for what may be another answer.
        """
        if not self._is_plain or callable(value):
            return value
        if isinstance(value, Enum):
            return value.value
        if hasattr(value, "__array__"):
            array = np.asarray(value)
            return value if array.dtype.kind == "O" else array
        if hasattr(value, "__float__"):
            return float(value)
        if isinstance(value, Iterable):
            items = list(itertools.islice(value, _MOST_ITEMS + 1))
            if len(items) > _MOST_ITEMS:
                raise WireError(f"a {type(value).__name__} has more than {_MOST_ITEMS} items")
            return items
        return value

    def shares(self, kind: type) -> bool:
        """Return whether a type is of a module whose text came over the channel."""
        return kind.__module__ in _NEIGHBOURS.texts

    def member(self, module: str, kind: str, name: str) -> Enum:
        """Return a member of an enumeration of such a module."""
        if module not in _NEIGHBOURS.texts:
            raise WireError(f"there is no module {module} on this side")
        member: Enum = getattr(importlib.import_module(module), kind).__members__[name]
        return member

    def perform(self, operation: str, *values: Any) -> Any:
        """Do what the evaluator asks."""
        match operation, values:
            case "call", (target, args, kwargs):
                return self._called(target, args, kwargs)
            case "method", (target, name, args, kwargs):
                return self._called(getattr(target, name), args, kwargs)
            case "special", (target, name, args):
                return self._called(getattr(target, name), args, {})
            case "attribute", (target, name):
                value = getattr(target, name)
                is_method = isinstance(value, MethodType | BuiltinMethodType)
                return [is_method, None if is_method else value]
            case "assign", (target, name, value):
                return setattr(target, name, value)
            case "load", (text, name, path, neighbours, watch, is_plain):
                self._watches = watch
                try:
                    return self._load(text, name, path, neighbours)
                finally:
                    self._is_plain = is_plain  # objects at the top of the module stay what they are
            case "state", ():
                return {"changed": self._changed}
        raise WireError(f"no operation {operation!r}")

    def describe(self, error: BaseException) -> list[Any]:
        """Return what is told of an exception of the program's."""
        if isinstance(error, Raised):  # the evaluator's own, come back
            return [type(error).__name__, str(error), None, ""]
        try:
            message = error.msg if isinstance(error, SyntaxError) else str(error)
            return [
                type(error).__name__, message[:_CHARACTERS], _line(error), _traceback(error)
            ]  # fmt: skip
        except BaseException:  # an exception's own methods may raise
            return [type(error).__name__, "", None, ""]

    def _called(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        before = self._form([args, kwargs]) if self._watches else None
        result = function(*args, **kwargs)
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        if before is not None and self._form([args, kwargs]) != before:
            self._changed = True
        return result

    def _form(self, value: object) -> Any:
        try:
            return encode(value, self.link)
        except WireError:
            return None

    def _load(self, text: str, name: str, path: str, neighbours: Mapping[str, str]) -> Any:
        _offer(neighbours)
        module = ModuleType(name)
        module.__file__ = path
        sys.modules[name] = module  # dataclasses look their own module up
        linecache.cache[FILENAME] = (len(text), None, text.splitlines(keepends=True), FILENAME)
        exec(_compiled(text), module.__dict__)
        functions: dict[str, Any] = {}
        values: dict[str, Any] = {}
        withheld: list[str] = []
        for key, value in list(module.__dict__.items()):
            if key.startswith("__"):
                continue
            if inspect.isfunction(value):
                is_own = value.__module__ == name
                functions[key] = [value, _parameters(value, self), _words(value), is_own]
            elif self._crosses(value):
                values[key] = value
            else:
                withheld.append(key)
        return {
            "module": _Module(module),
            "functions": functions,
            "values": values,
            "withheld": withheld,
            "about": module.__doc__ if isinstance(module.__doc__, str) else None,
        }

    def _crosses(self, value: object) -> bool:
        try:
            encode(value, self.link)
        except (WireError, MemoryError, RecursionError):
            return False
        return True


class _Module:
    """A loaded program, as what an evaluator may set attributes of."""

    def __init__(self, module: ModuleType) -> None:
        object.__setattr__(self, "_module", module)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._module, name, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_module"), name)


def _compiled(text: str) -> Any:
    try:
        return compile(text, FILENAME, "exec", dont_inherit=True)
    except (MemoryError, RecursionError):
        # The parser says so of code that is nested too deeply; it is not the memory limit.
        raise SyntaxError("the program is nested too deeply") from None


def _parameters(function: Any, manners: CandidateManners) -> list[list[Any]] | None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    told: list[list[Any]] = []
    for each in signature.parameters.values():
        has_default = each.default is not inspect.Parameter.empty
        default = each.default if has_default and manners._crosses(each.default) else None
        told.append([each.name, _SIGNED.index(each.kind), has_default, default])
    return told


def _words(function: Any) -> str | None:
    return function.__doc__ if isinstance(function.__doc__, str) else None


def _line(error: BaseException) -> int | None:
    """Return the program's line where an exception came from: the innermost one on the way."""
    steps = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in steps if frame.f_code.co_filename == FILENAME]
    if lines:
        return lines[-1]
    return error.lineno if isinstance(error, SyntaxError) and error.filename == FILENAME else None


def _traceback(error: BaseException) -> str:
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename != FILENAME:
        step = step.tb_next  # leave out the frames of this package
    lines = traceback.format_exception(type(error), error, step, limit=-_FRAMES, chain=False)
    return "".join(lines)[-_CHARACTERS:]


class _Neighbours(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules whose texts came over the channel."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.texts:
            return None
        is_package = any(each.startswith(f"{fullname}.") for each in self.texts)
        return importlib.util.spec_from_loader(fullname, self, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        text, file = self.texts[module.__name__], f"<{module.__name__}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)


_NEIGHBOURS = _Neighbours()


def _offer(neighbours: Mapping[str, str]) -> None:
    if _NEIGHBOURS not in sys.meta_path:
        sys.meta_path.append(_NEIGHBOURS)
    _NEIGHBOURS.texts.update(neighbours)

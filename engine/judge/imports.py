"""The evaluator's import of the program: it gets a module of stand-ins in its place.

Whatever the way of importing, a source file is executed by ``SourceFileLoader.exec_module`` or
``runpy.run_path``; both are replaced here. A file is trusted if it lies below the problem's folder
or among the libraries. Any other one is the program, or was written by the evaluator; only the
program's own text is sent to the candidate's process, and nothing else is executed.
"""

import importlib.machinery
import inspect
import runpy
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from engine.judge.link import Link
from engine.judge.values import WireError

_KINDS = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD,
)


class NotSplit(RuntimeError):
    """The evaluator does something that it can't do without the program in its own process."""


class Notes:
    """Why an evaluator can't be split, as it comes out."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def refusal(self, reason: str) -> NotSplit:
        """Note a reason and return the exception that says it."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        return NotSplit(f"split: {reason}")


class Imports:
    """Replaces the ways to import, for the rest of this process's life."""

    def __init__(
        self,
        *,
        link: Link,
        program: Path,
        trusted: tuple[Path, ...],
        neighbours: Mapping[str, str],
        is_watched: bool,
        is_plain: bool,
        notes: Notes,
    ) -> None:
        """Prepare; `install` replaces.

        Args:
            link: to the candidate's process.
            program: the program's file.
            trusted: folders besides the libraries whose files may be executed here.
            neighbours: modules that the program may import, by name.
            is_watched: whether the candidate's side looks for changed arguments.
            is_plain: whether the program's objects are to be made into numbers and lists.
            notes: take what can't be done.
        """
        self._link = link
        self._text = program.read_text(encoding="utf-8", errors="surrogateescape")
        libraries = [*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix]
        self._trusted = (*trusted, *(Path(each).resolve() for each in set(libraries)))
        self._neighbours = neighbours
        self._is_watched = is_watched
        self._is_plain = is_plain
        self._notes = notes

    def install(self) -> None:
        """Replace the ways to import."""
        loader: Any = importlib.machinery.SourceFileLoader
        execute, get_code, run_path = loader.exec_module, loader.get_code, runpy.run_path

        def exec_module(own: Any, module: ModuleType) -> None:
            path = own.get_filename(module.__name__)
            if self.is_trusted(path):
                execute(own, module)
            else:
                self.fill(module, path)

        def checked_code(own: Any, name: str) -> CodeType | None:
            if not self.is_trusted(own.get_filename(name)):
                raise self._notes.refusal("the evaluator asks for the program's code")
            code: CodeType | None = get_code(own, name)
            return code

        def checked_run(
            path_name: str,
            init_globals: dict[str, Any] | None = None,
            run_name: str | None = None,
        ) -> dict[str, Any]:
            if self.is_trusted(path_name):
                return run_path(path_name, init_globals, run_name)
            module = ModuleType(run_name or "<run_path>")
            self.fill(module, str(path_name))
            return dict(module.__dict__)

        loader.exec_module, loader.get_code, runpy.run_path = exec_module, checked_code, checked_run

    def fill(self, module: ModuleType, path: str) -> None:
        """Give a module what the program defines.

        Raises:
            NotSplit: the file is neither trusted nor the program.
            Raised: the program failed when it was loaded.
        """
        text = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
        if text != self._text:
            raise self._notes.refusal("the evaluator imports a file that it wrote itself")
        told = self._link.ask(
            "load",
            text,
            module.__name__,
            path,
            dict(self._neighbours),
            self._is_watched,
            self._is_plain,
        )
        try:
            _fill(module, path, told, self._link, self._notes)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            self._link.lost = f"a program's description is malformed: {error}"
            raise WireError(self._link.lost) from error

    def is_trusted(self, path: str) -> bool:
        """Return whether a file lies below the problem's folder or among the libraries."""
        real = Path(path).resolve()
        return any(real.is_relative_to(root) for root in self._trusted)


class _Program(ModuleType):
    """A module of stand-ins: what the evaluator sets in it is set in the program."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        remote = self.__dict__.get("_brood_remote")
        if remote is not None and not name.startswith("__"):
            setattr(remote, name, value)

    def __getattr__(self, name: str) -> Any:
        withheld = self.__dict__.get("_brood_withheld", ())
        if name in withheld:
            notes: Notes = self.__dict__["_brood_notes"]
            raise notes.refusal(f"the evaluator uses the program's {name}, which can't cross")
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def _fill(module: ModuleType, path: str, told: Any, link: Link, notes: Notes) -> None:
    module.__dict__["__file__"] = path
    module.__dict__["__doc__"] = told["about"] if isinstance(told["about"], str) else None
    for name, value in told["values"].items():
        module.__dict__[_identifier(name)] = value
    for name, (function, parameters, words, is_own) in told["functions"].items():
        stub = _stub(_identifier(name), function, parameters, words)
        stub.__module__ = module.__name__ if is_own is True else "program"
        module.__dict__[name] = stub
    module.__dict__["_brood_withheld"] = frozenset(map(str, told["withheld"]))
    module.__dict__["_brood_notes"] = notes
    module.__class__ = _Program
    module.__dict__["_brood_remote"] = told["module"]


def _identifier(name: Any) -> str:
    if type(name) is not str or not name.isidentifier() or name.startswith(("__", "_brood")):
        raise ValueError("a name is none")
    return name


def _stub(name: str, function: Any, parameters: Any, words: Any) -> Callable[..., Any]:
    """Return a function that calls the program's; ``inspect`` finds it to be like that one."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = words if isinstance(words, str) else None
    call._brood_remote = function  # type: ignore[attr-defined]
    if isinstance(parameters, list):
        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(
                    str(title),
                    _KINDS[kind],
                    default=default if has_default else inspect.Parameter.empty,
                )
                for title, kind, has_default, default in parameters
            ]
        )
    return call

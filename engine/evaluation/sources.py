"""A program's source in its own process: its code, and the import of one file by another.

The files of a program that is a bundle are modules, imported from memory: ``search/moves.py`` is
``search.moves``. They are found before those of the libraries, but for what is imported already.

Runs beside the candidate's own code: nothing here is trusted.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, ModuleType

FILENAME = "<program>"
"""What stands for the file of a program that is one text."""
_PREFIX = "<program>/"


def run_source(text: str, filename: str, module: ModuleType) -> None:
    """Run a source in a module; tracebacks show its lines."""
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(_compiled(text, filename), module.__dict__)


def load_files(files: Mapping[str, str]) -> None:
    """Let the files of a program be imported: text by name."""
    sys.meta_path.insert(0, _Finder(files))


def is_source(filename: str) -> bool:
    """Whether a name of a file, in code, is one of the program."""
    return filename == FILENAME or filename.startswith(_PREFIX)


def name_of(filename: str) -> str:
    """Return a file's name in its bundle."""
    return filename.removeprefix(_PREFIX)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of a program, and folders without ``__init__.py`` as packages."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._folders = {
            "/".join(parts[:depth])
            for parts in (name.split("/") for name in files)
            for depth in range(1, len(parts))
        }

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        place = fullname.replace(".", "/")
        for name in (f"{place}/__init__.py", f"{place}.py"):
            if name in self._files:
                return self._spec(fullname, name, self._files[name], place in self._folders)
        if place in self._folders:
            return self._spec(fullname, f"{place}/", "", True)
        return None

    def _spec(
        self, fullname: str, name: str, text: str, is_package: bool
    ) -> importlib.machinery.ModuleSpec:
        loader = _Loader(text, _PREFIX + name)
        return importlib.machinery.ModuleSpec(
            fullname, loader, origin=_PREFIX + name, is_package=is_package
        )


class _Loader(importlib.abc.Loader):
    def __init__(self, text: str, filename: str) -> None:
        self._text, self._filename = text, filename

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = self._filename
        run_source(self._text, self._filename, module)


def _compiled(text: str, filename: str) -> CodeType:
    try:
        code: CodeType = compile(text, filename, "exec", dont_inherit=True)
    except (MemoryError, RecursionError):
        # The parser says so of code that is nested too deeply; it is not the memory limit.
        raise SyntaxError("the program is nested too deeply") from None
    return code

"""Programs in files: a problem's initial one, and those that a user gives; a file, or a folder."""

import ast
from dataclasses import dataclass
from pathlib import Path

from engine.core import Problem, UserError
from engine.core.bundle import bundle_of, files_of, is_bundle
from engine.problem.declaration import read
from engine.problem.places import line_of_function, place, place_of_key
from engine.syntax.blocks import outline

INITIAL_FILE = "initial.py"
INITIAL_FOLDER = "initial"
_LEFT_OUT = ("__pycache__",)


def read_initial(folder: Path) -> str:
    """Return the initial program of the problem in ``folder``.

    Raises:
        UserError: a file of it can't be read, has no name for a program's file, is no Python
            although it says so, or lacks a mark of an evolve block.
    """
    several, single = folder / INITIAL_FOLDER, folder / INITIAL_FILE
    if several.is_dir() and single.exists():
        raise UserError(f"{folder} has both {INITIAL_FILE} and {INITIAL_FOLDER}/; remove one")
    program = _bundle(several) if several.is_dir() else read(single)
    where = several if several.is_dir() else single
    for name, text in files_of(program).items():
        if name.endswith(".py"):
            _check_python(several / name if is_bundle(program) else single, text)
    try:
        outline(program)
    except ValueError as error:
        raise UserError(f"{where}: {error}; give each block a start and an end") from error
    return program


def read_program(path: Path, *, initial_program: str) -> str:
    """Return a program of a problem from a file, or from a folder with its files.

    Args:
        path: of a folder, of the file of a program of one file, or of a text in the form of
            ``engine.core.bundle``.
        initial_program: the problem's.

    Raises:
        UserError: it can't be read, or a file has a name that it may not have.
    """
    if path.is_dir():
        return _bundle(path)
    text = read(path)
    if is_bundle(text) or not is_bundle(initial_program):
        return text
    names = [*files_of(initial_program)]
    if len(names) > 1:
        listed = ", ".join(names)
        raise UserError(f"{path} is one file, and the program has {listed}; give a folder")
    return bundle_of({names[0]: text}, main="")


def path_of_initial(folder: Path, program: str, name: str) -> Path:
    """Return where a problem's folder has a file of its initial program.

    Args:
        folder: the problem's.
        program: the initial one.
        name: of the file, as `files_of` has it.
    """
    several, single = folder / INITIAL_FOLDER, folder / INITIAL_FILE
    return several / name if is_bundle(program) or several.is_dir() else single


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """The entry point of an initial program.

    Attributes:
        function: its name, without the module.
        file: the name of the file that has to define it, as `files_of` has it.
        path: of that file in the problem's folder.
        text: of that file.
    """

    function: str
    file: str
    path: Path
    text: str

    @property
    def place(self) -> str:
        """The line that defines it, or the file alone."""
        return place(self.path, line_of_function(self.text, self.function))


def entry_of(problem: Problem) -> Entry:
    """Return the entry point of a problem's initial program.

    Raises:
        UserError: no file of the program can define it, as may be of a problem made in Python.
    """
    found = _entry(problem.folder, problem.initial_program, problem.entry_point)
    if found is None:
        raise UserError(
            f"problem {problem.name}: entry_point {problem.entry_point} is in no file of its "
            "program; give module.function"
        )
    return found


def check_entry_point(folder: Path, program: str, entry_point: str) -> None:
    """Raise a `UserError` where no line of an initial program could define the entry point.

    That of a bundle is ``module.function``, which may have folders: ``search.moves.best``.
    """
    *module, function = entry_point.split(".")
    declared = f"{place_of_key(folder, 'entry_point')}: entry_point {entry_point}"
    if not is_bundle(program) and module:
        raise UserError(f"{declared} names a module; give the function alone")
    if is_bundle(program) and not module:
        example = _example(files_of(program))
        raise UserError(f"{declared} names no module; give module.function, as {example}")
    entry = _entry(folder, program, entry_point)
    if entry is None:
        raise UserError(
            f"{declared} is in no file of {folder / INITIAL_FOLDER}; there is no "
            f"{'/'.join(module)}.py"
        )
    if not {function, "*"} & bound_names(ast.parse(entry.text)):
        raise UserError(
            f"{entry.path}: it defines no function {function!r}, which is the entry_point of "
            f"{place_of_key(folder, 'entry_point')}; define it, or mend entry_point"
        )


def bound_names(tree: ast.Module) -> set[str]:
    """Return every name that some line of a program binds; ``*`` if it imports unknown ones."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.alias(name=name, asname=alias):
                found.add(alias or name)
    return found


def _entry(folder: Path, program: str, entry_point: str) -> Entry | None:
    """Return the entry point, whose file may not define it; None if there is no such file."""
    *module, function = entry_point.split(".")
    files, stem = files_of(program), "/".join(module)
    names = [f"{stem}.py", f"{stem}/__init__.py"] if is_bundle(program) else [*files]
    name = next((name for name in names if name in files), None)
    if name is None:
        return None
    path = path_of_initial(folder, program, name)
    return Entry(function=function, file=name, path=path, text=files[name])


def _example(files: dict[str, str]) -> str:
    python = [name for name in files if name.endswith(".py")] or ["main.py"]
    return f"{python[-1].removesuffix('.py').replace('/', '.')}.run"


def _bundle(folder: Path) -> str:
    paths = [
        path
        for path in sorted(folder.rglob("*"))
        if not path.is_dir() and not set(_LEFT_OUT) & set(path.relative_to(folder).parts)
    ]
    try:
        return bundle_of({path.relative_to(folder).as_posix(): read(path) for path in paths})
    except ValueError as error:
        raise UserError(f"{folder}: {error}") from error


def _check_python(path: Path, text: str) -> None:
    try:
        ast.parse(text)
        compile(text, str(path), "exec")  # sees more, such as a `return` outside a function
    except (SyntaxError, ValueError) as error:  # ValueError: a null character, before 3.12
        line, said = getattr(error, "lineno", None), getattr(error, "msg", error)
        raise UserError(f"{place(path, line)}: it does not parse: {said}; mend it") from error
    except (RecursionError, MemoryError) as error:
        raise UserError(f"{path}: it is nested too deeply to be parsed; flatten it") from error

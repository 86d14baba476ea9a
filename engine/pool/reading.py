"""Reading a pool: folders of programs, and the folders of other runs.

A folder of programs holds ``*.py`` files, one program each; what else lies there is not looked at,
nor are folders in it. Anyone may have written the files, so they are read and parsed, and never
run here: only an evaluator runs them, behind its walls. A file that can't be a program of the
problem is reported with the reason, and the others are read all the same.

Does not cover evaluating the programs, or which of them go where (``seeding.py``).
"""

import os
import stat
import symtable
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.core import Problem, Program, UserError
from engine.core.bundle import is_bundle
from engine.paths import expanded
from engine.pool.runs import read_run
from engine.store import is_run
from engine.syntax import read
from engine.syntax.blocks import keeps_fixed

MAX_BYTES = 1 << 18
"""The largest file that is read: many times what a model can be shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolReading:
    """What a pool's sources hold, in the order of the sources.

    Attributes:
        programs: those that are worth an evaluation, each different one once, by their names:
            ``FOLDER/FILE`` or ``RUN/CANDIDATE``.
        unusable: why something is left out, in one line, by its name.
    """

    programs: Mapping[str, Program]
    unusable: Mapping[str, str]


def read_pool(sources: Sequence[str | Path], *, problem: Problem, most_of_run: int) -> PoolReading:
    """Return the programs of all sources, each different one once.

    Args:
        sources: folders of programs, in the order of their files' names, or of runs, their best
            programs first.
        problem: that the programs are for.
        most_of_run: how many programs of a run are read: its best, by the scores it recorded.

    Raises:
        UserError: a source is no folder, or can't be listed.
    """
    names: dict[str, str] = {}  # by the programs' keys
    programs: dict[str, Program] = {}
    unusable: dict[str, str] = {}
    for label, source in _labelled(sources):
        for name, found in _found(label, source, problem, most_of_run):
            try:
                program = _program(found, problem)
                if names.setdefault(program.key, name) != name:
                    raise UserError(f"the same program as {names[program.key]}")
                programs[name] = program
            except UserError as error:
                unusable[name] = str(error)
    return PoolReading(programs=programs, unusable=unusable)


def _labelled(sources: Sequence[str | Path]) -> Iterator[tuple[str, Path]]:
    """Yield each source, as a full path, and a name that no other one has."""
    taken: set[str] = set()
    for source in sources:
        folder = expanded(Path(source), what="pool", links=True)
        if not folder.is_dir():
            raise UserError(f"pool {source} is not a folder; give a folder of programs or a run's")
        label = name = _shown(folder.name)
        number = 1
        while label in taken:
            number += 1
            label = f"{name}#{number}"
        taken.add(label)
        yield label, folder


def _found(
    label: str, folder: Path, problem: Problem, most_of_run: int
) -> Iterator[tuple[str, str | Path | UserError]]:
    """Yield the name of each program in a folder, and its text or its file; or what is wrong."""
    if is_run(folder):
        try:
            run = read_run(folder, problem=problem.name, direction=problem.direction)
        except UserError as error:
            yield label, error
            return
        yield from ((f"{label}/{each.id}", each.program) for each in run.best(most_of_run))
        return
    try:
        files = sorted(each.name for each in folder.iterdir() if each.name.endswith(".py"))
    except OSError as error:
        raise UserError(f"pool {folder} can't be read: {error.strerror}") from error
    yield from ((f"{label}/{_shown(file)}", folder / file) for file in files)


def _shown(name: str) -> str:
    """Return a file's name in one line of text; other names are shown otherwise."""
    if name.isprintable() and "\\" not in name:
        return name
    return name.encode("unicode_escape").decode()


def _text(file: Path) -> str:
    try:
        path = file.resolve()
        if path.parent != file.parent:
            raise UserError("a link to something outside the folder")
        with open(path, "rb", opener=_opened) as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise UserError("not a regular file")
            content = opened.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UserError(f"larger than {MAX_BYTES} bytes")
        # With a byte order mark or without, and whatever ends its lines: as Python reads it.
        text = content.decode("utf-8-sig")
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle
        reason = error.strerror if isinstance(error, OSError) else "a link that leads nowhere"
        raise UserError(f"can't be read: {reason}") from error
    except UnicodeDecodeError as error:
        raise UserError("not UTF-8 text") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _opened(path: str, flags: int) -> int:
    # Without blocking: whoever opens a pipe would wait for its other end.
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)


def _program(found: str | Path | UserError, problem: Problem) -> Program:
    """Return the program in a text or a file.

    Raises:
        UserError: why it is left out, such as that it does not bind the name of the entry point.
    """
    if isinstance(found, UserError):
        raise found
    text = found if isinstance(found, str) else _text(found)
    program = read(text)
    if program is None:
        raise UserError("not valid Python, or nested too deeply")
    if not keeps_fixed(text, parent=problem.initial_program):
        raise UserError("has other text outside the evolve blocks than the initial program")
    if not is_bundle(text) and problem.entry_point:
        _check_entry_point(text, problem.entry_point)
    return program


def _check_entry_point(text: str, entry_point: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the text holds, as in `parse`
        module = symtable.symtable(text, "<program>", "exec")
    if entry_point in module.get_identifiers():
        symbol = module.lookup(entry_point)
        if symbol.is_assigned() or symbol.is_imported():
            return
    raise UserError(f"defines no function {entry_point!r}")

"""Reading a pool: folders of programs, and the folders of other runs.

A folder of programs holds ``*.py`` files, one program each; what else lies there is not looked at,
nor are folders in it. Anyone may have written the files, so they are read and parsed, and never
run here: only an evaluator runs them, behind its walls. A file that can't be a program of the
problem is reported with the reason, and the others are read all the same.

Does not cover evaluating the programs, or which of them go where (``allocation.py``).
"""

from __future__ import annotations

import os
import stat
import symtable
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine import program as programs
from engine.core import Candidate, Evaluation, Problem, UserError
from engine.pool.runs import read_run
from engine.store.log import DATABASE

MAX_BYTES = 1 << 18
"""The largest file that is read: many times what a model can be shown."""


class _Unreadable(Exception):
    """A file that is not taken, and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolProgram:
    """A program that is worth an evaluation.

    Attributes:
        name: ``FOLDER/FILE`` or ``RUN/CANDIDATE``; no other program of the pool has it.
        program: its text.
    """

    name: str
    program: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Unusable:
    """What is left out of a pool, and why, in one line."""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolReading:
    """What a pool's sources hold, in the order of the sources."""

    programs: tuple[PoolProgram, ...]
    unusable: tuple[Unusable, ...]


def read_pool(sources: Sequence[Path], *, problem: Problem, most_of_run: int) -> PoolReading:
    """Return the programs of all sources, each different one once.

    Args:
        sources: folders of programs, in the order of their files' names, or of runs, their best
            programs first.
        problem: that the programs are for.
        most_of_run: how many programs of a run are read: its best, by the scores it recorded.

    Raises:
        UserError: a source is no folder, or can't be listed.
    """
    taken: list[PoolProgram] = []
    unusable: list[Unusable] = []
    names: dict[str, str] = {}  # of the programs taken, by their keys
    for label, source in _labelled(sources):
        for name, text in _texts(label, source, problem, most_of_run):
            try:
                if isinstance(text, _Unreadable):
                    raise text
                key = _key(text, problem.entry_point)
                if key in names:
                    raise _Unreadable(f"the same program as {names[key]}")
            except _Unreadable as error:
                unusable.append(Unusable(name=name, reason=str(error)))
            else:
                names[key] = name
                taken.append(PoolProgram(name=name, program=text))
    return PoolReading(programs=tuple(taken), unusable=tuple(unusable))


def judged(
    pool: Iterable[PoolProgram], evaluations: Mapping[str, Evaluation]
) -> tuple[tuple[Candidate, ...], tuple[Unusable, ...]]:
    """Return the programs with a score, and the others with their verdicts.

    Args:
        pool: the programs.
        evaluations: of each, by its name.
    """
    valid: list[Candidate] = []
    failed: list[Unusable] = []
    for each in pool:
        verdict = evaluations[each.name]
        if verdict.score is not None:
            valid.append(Candidate(id=each.name, program=each.program, score=verdict.score))
        else:
            reason = " ".join(f"{verdict.failure}: {verdict.message}".split())
            failed.append(Unusable(name=each.name, reason=reason))
    return tuple(valid), tuple(failed)


def _labelled(sources: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yield each source, as a full path, and a name that no other one has."""
    taken: set[str] = set()
    for source in sources:
        folder = source.expanduser().resolve()
        if not folder.is_dir():
            raise UserError(f"pool {source} is not a folder; give a folder of programs or a run's")
        label = name = _shown(folder.name)
        number = 1
        while label in taken:
            number += 1
            label = f"{name}#{number}"
        taken.add(label)
        yield label, folder


def _texts(
    label: str, folder: Path, problem: Problem, most_of_run: int
) -> Iterator[tuple[str, str | _Unreadable]]:
    """Yield the name and the text of each program in a folder, or why it can't be read."""
    if (folder / DATABASE).exists():
        try:
            best = read_run(folder, problem=problem).best[:most_of_run]
        except UserError as error:
            yield label, _Unreadable(str(error))
            return
        yield from ((f"{label}/{each.id}", each.program) for each in best)
        return
    try:
        files = sorted(each.name for each in folder.iterdir() if each.name.endswith(".py"))
    except OSError as error:
        raise UserError(f"pool {folder} can't be read: {error.strerror}") from error
    for file in files:
        name = f"{label}/{_shown(file)}"
        try:
            yield name, _text(folder, file)
        except _Unreadable as error:
            yield name, error


def _shown(name: str) -> str:
    """Return a file's name in one line of text; other names are shown otherwise."""
    if name.isprintable() and "\\" not in name:
        return name
    return name.encode("unicode_escape").decode()


def _text(folder: Path, file: str) -> str:
    try:
        path = (folder / file).resolve()
        if path.parent != folder:
            raise _Unreadable("a link to something outside the folder")
        content = _content(path)
        # With a byte order mark or without, and whatever ends its lines: as Python reads it.
        text = content.decode("utf-8-sig")
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle
        reason = error.strerror if isinstance(error, OSError) else "a link that leads nowhere"
        raise _Unreadable(f"can't be read: {reason}") from error
    except UnicodeDecodeError as error:
        raise _Unreadable("not UTF-8 text") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _content(path: Path) -> bytes:
    # Without blocking: whoever opens a pipe would wait for its other end.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise _Unreadable("a folder" if stat.S_ISDIR(mode) else "not a regular file")
        content = b""
        while len(content) <= MAX_BYTES and (
            part := os.read(descriptor, MAX_BYTES + 1 - len(content))
        ):
            content += part
    finally:
        os.close(descriptor)
    if len(content) > MAX_BYTES:
        raise _Unreadable(f"larger than {MAX_BYTES} bytes")
    return content


def _key(text: str, entry_point: str) -> str:
    """Return what is equal for programs that are the same.

    Raises:
        _Unreadable: the text is no program, or does not bind the name ``entry_point``.
    """
    tree = programs.parse(text)
    if tree is None:
        raise _Unreadable("not valid Python, or nested too deeply")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the text holds, as in `parse`
        module = symtable.symtable(text, "<program>", "exec")
    if entry_point not in module.get_identifiers():
        raise _Unreadable(f"defines no function {entry_point!r}")
    symbol = module.lookup(entry_point)
    if not (symbol.is_assigned() or symbol.is_imported()):
        raise _Unreadable(f"defines no function {entry_point!r}")
    return programs.program_key(tree)

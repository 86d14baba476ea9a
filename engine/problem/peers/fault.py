"""Where the failure of another system's initial program is to be mended, by what was said of it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from engine.core import Failure
from engine.problem.declaration import read
from engine.problem.peers.config import Config
from engine.problem.peers.recognise import PeerFolder, find, parsed
from engine.problem.peers.scan import STOOD_FOR, imported_names, is_to_be_had, module_file
from engine.problem.places import line_of_function, place

_PROGRAM_LINE = re.compile(r"\(line (\d+) of the program\)")
_EVALUATOR_LINE = re.compile(r" \(([^()\s][^()]*\.py:\d+)\)$")
_MODULE = re.compile(r"No module named '([\w.]+)'")
_LIMITS = (
    (Failure.TIMEOUT, "timeout", "make it faster"),
    (Failure.MEMORY, "memory_limit_mb", "let it need less"),
)
_MEND = "mend the program or its evaluator"
_MOST = 3


def fault_of(folder: Path, failure: Failure | None, message: str) -> tuple[str, str]:
    """Return the file, with the line if there is one, that has to be mended, and how.

    Args:
        folder: the problem's.
        failure: its kind.
        message: why its initial program has no score.

    Raises:
        UserError: the folder is not what it was.
    """
    peer = find(folder)
    if peer is None:
        return str(folder), _MEND
    config = Config(peer.configs[0] if peer.configs else None)
    for kind, key, faster in _LIMITS:
        if failure is kind:
            where = str(peer.folder) if config.path is None else config.where("evaluator", key)
            return where, f"raise evaluator.{key}, or {faster}"
    lacking = list(_lacking(peer))
    named = _MODULE.search(message)
    for path, line, name in lacking:
        if named and f"{name}.".startswith(f"{named[1]}."):
            return place(path, line), _remedy(name)
    if found := _PROGRAM_LINE.search(message):
        return f"{peer.initial}:{found[1]}", _MEND
    if found := _EVALUATOR_LINE.search(message):
        return f"{folder / found[1]}", "mend the evaluator, or what it reads"
    text = read(peer.evaluator)
    lines = [line_of_function(text, name) for name in ("evaluate", "main")]
    where = place(peer.evaluator, next(filter(None, lines), None))
    names = ", ".join(f"{name} ({path.name}:{line})" for path, line, name in lacking[:_MOST])
    return (
        where,
        f"{_MEND}, or install what they import and is missing: {names}" if names else _MEND,
    )


def _remedy(name: str) -> str:
    if name.partition(".")[0] in STOOD_FOR:
        return f"do without {name}, for which nothing stands here"
    return f"install {name.partition('.')[0]} where this runs, or do without it"


def _lacking(peer: PeerFolder) -> Iterator[tuple[Path, int, str]]:
    """Yield what program and evaluator import but can't have: file, line, name.

    What a ``try`` makes dispensable is among it.
    """
    roots = tuple(dict.fromkeys((peer.evaluator.parent, peer.folder)))
    waiting = [path for path in (peer.initial, peer.evaluator) if path.suffix == ".py"]
    seen = set(waiting)
    while waiting:
        path = waiting.pop(0)
        for node in ast.walk(parsed(path, read(path))):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            for name in imported_names(ast.Module(body=[node], type_ignores=[])):
                found = module_file(name, roots)
                if found is not None and found not in seen:
                    seen.add(found)
                    waiting.append(found)
            for name in _modules(node):
                if not is_to_be_had(name, roots):
                    yield path, node.lineno, name


def _modules(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names)
    elif node.module and node.level == 0:
        yield node.module

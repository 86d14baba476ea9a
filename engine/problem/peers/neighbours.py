"""The modules of a folder that its programs import, which split programs are given as texts.

Those are what the initial program imports, and what these import in turn; never the evaluator. So
a program can know nothing of the folder that the initial program does not use.
"""

import ast
from pathlib import Path

from engine.core import UserError
from engine.problem.declaration import read
from engine.problem.peers.recognise import parsed
from engine.problem.peers.scan import imported_names, is_main_guard, module_file

MOST_CHARACTERS = 4 << 20


def neighbours(
    tree: ast.Module, *, roots: tuple[Path, ...], without: tuple[Path, ...]
) -> dict[str, str]:
    """Return the texts of modules by their dotted names.

    Args:
        tree: the initial program's.
        roots: folders whose modules it can import.
        without: files that programs must not know.

    Raises:
        UserError: a module does not parse, or they are too large.
    """
    found: dict[str, str] = {}
    waiting = list(imported_names(_without_main(tree)))
    while waiting:
        name = waiting.pop()
        parent = name.rpartition(".")[0]
        path = module_file(name, roots)
        if name in found or path is None or path in without:
            continue
        found[name] = read(path)
        waiting += [*imported_names(parsed(path, found[name])), *([parent] if parent else [])]
        if sum(map(len, found.values())) > MOST_CHARACTERS:
            raise UserError(
                f"{path}: the modules that the initial program imports have more than "
                f"{MOST_CHARACTERS >> 20} MB; move what it does not need out of them"
            )
    return found


def _without_main(tree: ast.Module) -> ast.Module:
    """Return a program without what runs only when it is the main one."""
    body = [node for node in tree.body if not is_main_guard(node)]
    return ast.Module(body=body, type_ignores=[])

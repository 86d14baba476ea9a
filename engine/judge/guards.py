"""What a split evaluator may not do, because the program would come to run in its process.

These are for evaluators that were not seen to do so when their folder was read
(``engine.problem.peers``); they keep out no evaluator that means harm. Each refusal is noted, so
that a rehearsal finds that the folder can't be split.
"""

import ast
import builtins
import multiprocessing.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

from engine.judge.imports import Notes

_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "pty.spawn")


def install(program: str, notes: Notes, *, is_trusted: Callable[[str], bool]) -> None:
    """Refuse to execute the program's text, and to start another executable.

    Args:
        program: the program's text.
        notes: take what was refused.
        is_trusted: tells a file that may be executed, also where the program is a copy of it.
    """
    text = program.strip()

    def holds_program(source: object) -> bool:
        if isinstance(source, CodeType):
            return False
        if isinstance(source, bytes | bytearray):
            source = bytes(source).decode(errors="replace")
        return isinstance(source, str) and bool(text) and text in source

    def is_own(source: object, filename: object) -> bool:
        """Return whether a text is a trusted file's, such as of the initial program, imported."""
        if not isinstance(source, bytes) or not isinstance(filename, str):
            return False
        path = Path(filename)
        return path.is_file() and is_trusted(filename) and path.read_bytes() == source

    def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(source: Any, *args: Any, **kwargs: Any) -> Any:
            if holds_program(source):
                raise notes.refusal("the evaluator executes the program's text")
            scope = args[0] if args else kwargs.get("globals")
            if scope is None:  # then both look at their caller's names
                frame = sys._getframe(1)
                kwargs.pop("globals", None)
                args = (frame.f_globals, *(args[1:] or (frame.f_locals,)))
            return function(source, *args, **kwargs)

        return call

    compiled = builtins.compile

    def compile_(source: Any, *args: Any, **kwargs: Any) -> Any:
        flags = args[2] if len(args) > 2 else kwargs.get("flags", 0)
        if not flags & ast.PyCF_ONLY_AST:
            if isinstance(source, ast.AST):
                raise notes.refusal("the evaluator compiles a syntax tree")
            if holds_program(source) and not is_own(source, args[0] if args else ""):
                raise notes.refusal("the evaluator compiles the program's text")
        return compiled(source, *args, **kwargs)

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STARTS:
            raise notes.refusal(f"the evaluator starts a process ({event})")

    util: Any = multiprocessing.util
    start = util.spawnv_passfds

    def spawn(path: Any, args: Any, descriptors: Any) -> Any:
        if not any("resource_tracker" in str(each) for each in args):  # which runs nothing of ours
            raise notes.refusal("the evaluator starts a process (multiprocessing)")
        return start(path, args, descriptors)

    util.spawnv_passfds = spawn  # of which no audit hook is told
    builtins.exec = guarded(exec)
    builtins.eval = guarded(eval)
    builtins.compile = compile_
    sys.addaudithook(audit)

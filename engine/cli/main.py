"""``brood COMMAND``: finds a command and runs its module as ``python -m`` would.

Nothing else is imported here, so that help is there at once. Exit codes: the command's; 2 for one
that there is not.
"""

import difflib
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.cli import shells
from engine.cli.commands import BENCH, COMMANDS, benchmarks, docstring, installed
from engine.terminal import end_at_once, guarded

_HELP = ("--help", "-h")
_EXAMPLES = """
Examples:
  brood run problem=signal model=mutation budget.candidates=50
  brood run --multirun search.k=1,2,4,8 seed=0,1,2 name=widths
  brood resume runs/NAME
  brood evaluate problem=signal program=best.py
  brood report runs/A runs/B analysis=progress

brood COMMAND --help says more. Tab completion: brood completion bash --help.
"""


def main() -> int:
    """Run the command line; return the exit code."""
    return guarded(_main)


def _main() -> int:
    name, *rest = sys.argv[1:] or ["--help"]
    if name in (*_HELP, "help"):
        sys.stdout.write(overview())
        return 0
    if name == "--version":
        import engine

        print(f"brood {engine.__version__}")
        return 0
    if name == "completion":
        return shells.main(rest)
    if name == "complete":  # what the shells' functions call
        from engine.cli.words import words

        sys.stdout.write("".join(f"{each}\n" for each in words(rest[1:])))
        return 0
    command = installed().get(name)
    if command is None:
        if name == "bench":
            sys.stderr.write("error: benchmarks are no part of a wheel; see docs/install.md\n")
            return 2
        return _refuse("command", name, list(installed()))
    if name == "bench" and rest and rest[0] not in _HELP:
        return _bench(*rest)
    if name == "bench" or set(_HELP) & set(rest):
        sys.stdout.write(command.usage.replace("``", ""))
        return 0
    if name == "resume":
        if not rest:
            sys.stderr.write("error: give one folder, as in brood resume runs/NAME\n")
            return 2
        rest = [f"resume={rest[0]}", *rest[1:]]
    assert command.module is not None
    return _run(command.module, rest)


def overview() -> str:
    """Return the help of ``brood`` itself."""
    width = max(len(each.name) for each in COMMANDS)
    lines = [f"  {each.name:{width}}  {each.says}\n" for each in installed().values()]
    return "".join(["Usage: brood COMMAND [ARGUMENT...]\n\nCommands:\n", *lines, _EXAMPLES])


def _run(module: str, arguments: Sequence[str]) -> int:
    """Run a module as ``python -m`` would; its exit code is raised as `SystemExit`."""
    sys.argv[1:] = arguments
    # The user's own policies, as module:Class. At the end, so that nothing of ours is hidden.
    sys.path.append(str(Path.cwd()))
    end_at_once()
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


def _bench(name: str, *arguments: str) -> int:
    """Run a benchmark in place of this process; its own processes find the folder too."""
    known = benchmarks()
    if name not in known:
        return _refuse("benchmark", name, list(known))
    if set(_HELP) & set(arguments):
        sys.stdout.write(docstring(known[name]))
        return 0
    paths = [str(BENCH.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", f"bench.{name}", *arguments]
    return os.execve(sys.executable, command, environ)


def _refuse(kind: str, name: str, valid: Sequence[str]) -> int:
    close = difflib.get_close_matches(name, valid, n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    sys.stderr.write(f"error: unknown {kind} {name[:50]!r}; {meant}valid: {', '.join(valid)}\n")
    return 2

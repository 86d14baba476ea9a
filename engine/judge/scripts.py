"""Evaluators that are scripts: ShinkaEvolve's, and those of SkyDiscover's containers.

ShinkaEvolve's takes ``--program_path`` and ``--results_dir`` and writes ``metrics.json`` and
``correct.json``. A container's takes the program's path and prints a JSON object; the container has
the evaluator's folder at `MOUNT`, so a script's own texts that name a path there are read as paths
of that folder. Other files than the evaluator's own are not changed in this way.
"""

import ast
import asyncio
import contextlib
import inspect
import io
import json
import runpy
import sys
import tempfile
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from engine.judge.result import EvaluatorError, Result, is_number, result_of
from engine.judge.setup import Setup

MOUNT = "/benchmark"
"""Where a container of SkyDiscover's has the evaluator's folder."""
_compile = compile  # split evaluators may not; see `guards`


def run_writing(setup: Setup, program: Path) -> Result:
    """Run a script of ShinkaEvolve's on a program, and return what it wrote.

    Raises:
        EvaluatorError: it wrote no result.
    """
    results = Path(tempfile.mkdtemp(prefix="results-"))
    try:
        names = _run(setup, "--program_path", str(program), "--results_dir", str(results))
        if not (results / "metrics.json").exists() and callable(names.get("main")):
            awaited(names["main"](str(program), str(results)))
    except SystemExit as ended:
        if ended.code not in (None, 0) and not (results / "correct.json").exists():
            raise EvaluatorError(f"{setup.evaluator} exited with {ended.code!r}") from ended
    metrics = _json(results / "metrics.json", setup)
    correct = _json(results / "correct.json", setup)
    result = Result()
    public = metrics.get("public")
    for given in (public if isinstance(public, dict) else {}, metrics):
        for name, value in given.items():
            if is_number(value):
                result.metrics[str(name)] = float(value)
            elif name not in ("public", "private"):  # a model may not see what is private
                result.artifacts[str(name)] = value
    if correct.get("correct") is not True:
        result.error = str(correct.get("error") or "the program is not correct")
        result.is_refused = True
    return result


def run_printing(setup: Setup, program: Path) -> Result:
    """Run a script of a container on a program, and return what it printed.

    Raises:
        EvaluatorError: it printed no JSON object.
    """
    printed, code = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        try:
            _run(setup, str(program))
        except SystemExit as ended:
            code = ended.code
    text = printed.getvalue()
    last = text.strip().rpartition("\n")[2]
    found = next((each for each in map(_object, (text, last)) if each is not None), None)
    if found is None:
        how = "" if code in (None, 0) else f" and exited with {code!r}"
        raise EvaluatorError(f"{setup.evaluator} printed no JSON object{how}")
    result = result_of(found)
    status = found.get("status", "success")
    if status != "success" and not result.error:
        result.error = f"the evaluator's status is {status!r}"
    return result


def awaited(value: Any) -> Any:
    """Return a value, or what a coroutine returns."""

    async def wait() -> Any:
        return await value

    return asyncio.run(wait()) if inspect.isawaitable(value) else value


def code_at_mount(path: Path) -> CodeType | None:
    """Return a file's code with paths below `MOUNT` as ones of its folder; None if it has none."""
    text = path.read_text(encoding="utf-8")
    if MOUNT not in text:
        return None
    tree = ast.parse(text, str(path))
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as found) if f"{found}/".startswith(f"{MOUNT}/"):
                node.value = str(path.parent) + found.removeprefix(MOUNT)
    code: CodeType = _compile(tree, str(path), "exec", dont_inherit=True)
    return code


def _run(setup: Setup, *arguments: str) -> dict[str, Any]:
    """Run the evaluator as the main program, and return its names."""
    sys.argv = [setup.evaluator, *arguments]
    code = code_at_mount(Path(setup.evaluator))
    if code is None:
        return runpy.run_path(setup.evaluator, run_name="__main__")
    module = sys.modules["__main__"] = ModuleType("__main__")
    module.__file__ = setup.evaluator
    exec(code, module.__dict__)
    return module.__dict__


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _json(path: Path, setup: Setup) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EvaluatorError(f"{setup.evaluator} wrote no {path.name} to --results_dir") from error
    except ValueError as error:
        raise EvaluatorError(f"{setup.evaluator} wrote a {path.name} that is no JSON") from error
    if not isinstance(found, dict):
        raise EvaluatorError(f"{setup.evaluator} wrote a {path.name} that is no object")
    return found

"""What a problem says of itself: statement, known scores, features, modules, cases."""

import ast
import importlib.util
import itertools
import math
import re
import sys
from collections.abc import Iterator, Mapping

import numpy as np

from engine.checking.finding import Finding, doubtful, good, wrong
from engine.checking.trials import Baseline, Trial
from engine.core import Case, Problem
from engine.core.bundle import files_of
from engine.evaluation.warmth import WARM_MODULES
from engine.problem.initial import Entry, entry_of, path_of_initial
from engine.problem.places import place, place_of_function, place_of_key
from engine.search.features import measure
from engine.syntax import read


def check_statement(problem: Problem) -> Iterator[Finding]:
    """Say whether the statement names what a program has to define, and what it is given."""
    path, defined = problem.folder / "statement.md", entry_of(problem)
    entry, said = defined.function, set(re.findall(r"\w+", problem.statement))
    if entry not in said:
        yield doubtful(
            "statement",
            f"it does not name the function {entry!r}",
            where=str(path),
            remedy="say what it is given and what it has to return",
        )
    names = _parameters(defined)
    unsaid = [name for name in _given(problem.cases, names) if name not in said]
    if unsaid:
        yield doubtful(
            "statement",
            f"it does not name the arguments {', '.join(unsaid)} of {entry}",
            where=str(path),
            remedy="say what each of them is",
        )
    other = _written_otherwise(problem, entry, names)
    if other is not None:
        line, listed = other
        file = defined.path.relative_to(problem.folder)
        yield doubtful(
            "statement",
            f"it has {entry}({listed}), and {file} {entry}({', '.join(names)})",
            where=place(path, line),
            remedy="let both have the same names",
        )
    if entry in said and not unsaid and other is None:
        yield good("statement", f"it names {entry} and its arguments")


def _parameters(entry: Entry) -> list[str]:
    """Return the names of the entry point's arguments; none if it is not written as usual."""
    try:
        nodes = ast.walk(ast.parse(entry.text))
    except (SyntaxError, ValueError, RecursionError):
        return []
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name == entry.function:
            every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            return [each.arg for each in every]
    return []


def _given(cases: tuple[Case, ...], names: list[str]) -> list[str]:
    """Return the names of the arguments that some case gives."""
    most = max((len(case.args) for case in cases), default=0)
    keywords = {name for case in cases for name in case.kwargs}
    return list(dict.fromkeys([*names[:most], *sorted(keywords)]))


def _written_otherwise(problem: Problem, function: str, names: list[str]) -> tuple[int, str] | None:
    """Return a line of the statement that calls the function with other names, and those."""
    call = re.compile(rf"\b{re.escape(function)}\(([^()]*)\)")
    text = (problem.folder / "statement.md").read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        for match in call.finditer(line):
            written = [each.partition("=")[0].partition(":")[0] for each in match[1].split(",")]
            listed = [each.strip() for each in written if each.strip()]
            if names and listed != names and all(map(str.isidentifier, listed)):
                return number, match[1]
    return None


def check_known(problem: Problem, baseline: Baseline) -> Iterator[Finding]:
    """Say whether there is a target, and whether it and the published scores make sense."""
    better, target = problem.direction.better, problem.target
    known = [each.score for each in problem.known_scores if each.comparable]
    if target is None:
        yield doubtful(
            "target",
            "there is none",
            where=place_of_key(problem.folder, "target"),
            remedy="add 'target: SCORE', a score worth reaching",
        )
    elif known and any(better(each, than=target) for each in known):
        best = min(known, key=problem.direction.key)
        yield doubtful(
            "target",
            f"it is {target!r}, and a published score is better: {best!r}",
            where=place_of_key(problem.folder, "target"),
            remedy="ask for more, or mark that score 'comparable: false'",
        )
    else:
        yield good("target", f"it is {target!r}, and the initial program has {baseline.best!r}")
    beaten = [each for each in known if better(baseline.best, than=each)]
    if beaten:
        yield doubtful(
            "known",
            f"the initial program beats the published score {beaten[0]!r}",
            where=place_of_key(problem.folder, "known_scores"),
            remedy="look whether it measures the same, in the same direction",
        )


def check_features(problem: Problem, first: Trial) -> Iterator[Finding]:
    """Say whether the initial program has the features, and lies within their ranges."""
    values = measure(read(problem.initial_program), metrics=first.evaluation.metrics)
    where = place_of_key(problem.folder, "features")
    for feature in problem.features:
        value = values.get(feature.name, math.nan)
        if math.isnan(value):
            yield wrong(
                "features",
                f"the initial program has no feature {feature.name!r}; it has "
                f"{', '.join(sorted(values))}",
                where=where,
                remedy="name one of these",
            )
        elif not feature.low <= value <= feature.high:
            yield doubtful(
                "features",
                f"{feature.name} is {value:.6g} in the initial program, outside "
                f"[{feature.low:g}, {feature.high:g}]",
                where=where,
                remedy="widen the range, if programs like it are to be told apart",
            )
        else:
            yield good("features", f"{feature.name} is {value:.6g} in the initial program")


def check_modules(problem: Problem) -> Iterator[Finding]:
    """Say which modules the initial program pays for at each evaluation."""
    ready = {name.partition(".")[0] for name in (*WARM_MODULES, *problem.modules)}
    files = files_of(problem.initial_program)
    own = {name.removesuffix(".py").partition("/")[0] for name in files}
    free = {*ready, *own, *sys.stdlib_module_names, "numpy", "scipy"}
    for file, line, name in _imports(files):
        root = name.partition(".")[0]
        if root in free or importlib.util.find_spec(root) is None:
            continue
        yield doubtful(
            "modules",
            f"every evaluation imports {root} anew",
            where=place(path_of_initial(problem.folder, problem.initial_program, file), line),
            remedy=f"add 'modules: [{root}]' to problem.yaml",
        )
        free.add(root)


def _imports(files: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Yield what the files of a program import: file, line, module."""
    for file, text in files.items():
        try:
            nodes = list(ast.walk(ast.parse(text))) if file.endswith(".py") else []
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from ((file, node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield file, node.lineno, node.module


def check_isolation(problem: Problem) -> Iterator[Finding]:
    """Say whether one case tells a program what another one hides."""
    if problem.isolate_cases:
        yield good("isolation", "each case has a process of its own")
        return
    for one, other in itertools.permutations(problem.cases, 2):
        if _begins(one, other):
            yield doubtful(
                "isolation",
                f"{one.name} gets the beginning of what {other.name} gets, in the same process",
                where=place_of_function(problem.folder / "evaluator.py", "cases"),
                remedy="add 'isolate_cases: true' to problem.yaml, if the rest is to be unknown",
            )
            return
    yield good("isolation", "all cases share a process; no input is the beginning of another")


def _begins(one: Case, other: Case) -> bool:
    """Return whether an array of ``one`` is a strict beginning of one in the same place."""
    pairs = zip(one.args, other.args, strict=False)
    return any(
        isinstance(a, np.ndarray)
        and isinstance(b, np.ndarray)
        and a.ndim == b.ndim > 0
        and 1 < len(a) < len(b)
        and np.array_equal(a, b[: len(a)])
        for a, b in pairs
    )

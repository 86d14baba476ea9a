"""From another system's folder to a `Problem`."""

import ast
import hashlib
import json
import logging
import re
from collections.abc import Iterable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from engine.core import JUDGED, Direction, Judge, JudgeKind, Problem, UserError
from engine.core.bundle import MAIN, bundle_of
from engine.judge.contracts import SHIMS
from engine.judge.setup import Setup
from engine.problem.command import check_is_in_reach
from engine.problem.declaration import read
from engine.problem.peers.config import Config
from engine.problem.peers.environment import passed_on
from engine.problem.peers.limits import limits
from engine.problem.peers.neighbours import neighbours
from engine.problem.peers.recognise import PeerFolder, parsed
from engine.problem.peers.scan import Scan, scan
from engine.problem.peers.statement import statement
from engine.syntax.blocks import outline

METRIC = "combined_score"
THRESHOLDS = (0.5, 0.75, 0.9)
"""OpenEvolve's, for a configuration that names none."""

_STAGES = ("evaluate_stage1", "evaluate_stage2", "evaluate_stage3")
_USED = ("prompt", "evaluator", "language", "file_suffix", "system_message", "prompts")
_OUTPUTS = {"__pycache__", "openevolve_output", "outputs", "results", "checkpoints", "node_modules"}
_IMPORTS = (ast.Import, ast.ImportFrom)
_WARM = {"numpy", "scipy", "networkx", "sympy", "sklearn", "concurrent", "asyncio"}
_log = logging.getLogger("brood")


def read_peer(peer: PeerFolder, *, metric: str | None) -> Problem:
    """Return the problem in another system's folder.

    Args:
        peer: its files.
        metric: the one that is the score; None for `METRIC`.

    Raises:
        UserError: a file of it is not what its system's is; the message has file, line and remedy.
            Or the folder lies where no box can read it.
    """
    check_is_in_reach(peer.folder)
    config = Config(peer.configs[0] if peer.configs else None)
    text = _initial(peer)
    initial_program = _as_program(peer, text)
    roots = tuple(dict.fromkeys((peer.evaluator.parent, peer.folder)))
    is_python = peer.initial.suffix == ".py"
    tree = parsed(peer.initial, text) if is_python else ast.Module(body=[], type_ignores=[])
    stages = _stages(peer, config)
    found = scan(peer.evaluator, entries=[name for name, _ in stages], roots=roots)
    arguments = _check_functions(peer, config, stages, found)
    task, source = statement(peer, config)
    entry_point = _entry_point(tree, found)
    setup = Setup(
        contract=peer.contract,
        evaluator=str(peer.evaluator),
        folder=str(peer.folder),
        metric=metric or METRIC,
        stages=stages,
        arguments=arguments,
        shared=tuple(map(str, found.shared)),
        environment=passed_on(found.environment),
        exempt=hashlib.sha256(text.encode()).hexdigest(),
        neighbours=neighbours(tree, roots=roots, without=(peer.evaluator,)),
        joined_by=_joined_by(peer, found),
    )
    _say(peer, config, source, setup)
    return Problem(
        name=peer.folder.name,
        folder=peer.folder,
        direction=Direction.MAXIMISE,
        statement=_asked(task, entry_point),
        initial_program=initial_program,
        entry_point=entry_point,
        stages=JUDGED,
        isolate_cases=False,
        limits=limits(peer, config),
        modules=_libraries(peer, tree),
        known_scores=(),
        fingerprint=fingerprint_of(peer.folder, setup, modules=found.modules),
        judge=Judge(
            kind=JudgeKind.TOGETHER if setup.joined_by else JudgeKind.SPLIT,
            setup=setup.to_json(),
            file=MAIN,
            readable=(str(SHIMS), *setup.shared),
        ),
    )


def fingerprint_of(folder: Path, setup: Setup, *, modules: Iterable[Path]) -> str:
    """Return a SHA-256 over all files of a folder, and how its evaluator is called.

    Args:
        folder: the problem's.
        setup: how its evaluator is called.
        modules: files of the evaluator, of which some may lie elsewhere.

    Raises:
        UserError: a file can't be read.
    """
    called: list[object] = [setup.metric, setup.stages, setup.contract]
    if setup.environment:
        called.append(dict(setup.environment))
    digest = hashlib.sha256(json.dumps(called).encode())
    elsewhere = {path for path in modules if not path.is_relative_to(folder)}
    for path in sorted({*folder.rglob("*"), *elsewhere}):
        is_here = path not in elsewhere
        parts = path.relative_to(folder).parts if is_here else (path.name,)
        if not path.is_file() or any(part in _OUTPUTS or part[0] == "." for part in parts):
            continue
        try:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").digest()
        except OSError as error:
            raise UserError(f"{path} can't be read: {error.strerror}") from error
        name = "/".join(parts).encode(errors="surrogateescape")  # its own bytes
        digest.update(name + b"\0" + content)
    return digest.hexdigest()


def _initial(peer: PeerFolder) -> str:
    text = read(peer.initial)
    if not text.strip():
        raise UserError(f"{peer.initial}:1: is empty; give a program to begin with")
    try:
        outline(text)
    except ValueError as error:
        line = re.search(r"line (\d+)", str(error))
        where = f"{peer.initial}:{line[1]}" if line else f"{peer.initial}"
        raise UserError(f"{where}: {error}; give each block a start and an end") from error
    return text


def _as_program(peer: PeerFolder, text: str) -> str:
    """Return the text of the initial program with its file's name, if it is not Python.

    Raises:
        UserError: no file of a program may have its ending.
    """
    if peer.initial.suffix == ".py":
        return text
    try:
        return bundle_of({f"program{peer.initial.suffix}": text})
    except ValueError as error:
        raise UserError(f"{peer.initial}: {error}; give the file another ending") from error


def _stages(peer: PeerFolder, config: Config) -> tuple[tuple[str, float | None], ...]:
    """Return the functions to call in turn, with the score that each asks for.

    As in OpenEvolve, where there is a first stage it takes the place of ``evaluate``, even alone.
    """
    if peer.contract != "openevolve":
        return ()
    tree = parsed(peer.evaluator, read(peer.evaluator))
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    thresholds = config.numbers("evaluator", "cascade_thresholds") or THRESHOLDS
    is_wanted = config.flag("evaluator", "cascade_evaluation")
    names = list(takewhile(defined.__contains__, _STAGES))
    if is_wanted is False or not names:
        return (("evaluate", None),)
    wanted = len(thresholds) + 1  # a stage without a threshold before it is never come to
    names = names[:wanted]
    padded = [*thresholds, *([None] * len(names))]
    return tuple(
        (name, padded[at] if at < len(names) - 1 else None) for at, name in enumerate(names)
    )


def _check_functions(
    peer: PeerFolder, config: Config, stages: tuple[tuple[str, float | None], ...], found: Scan
) -> Mapping[str, Any]:
    """Return the further arguments of ``evaluate``.

    Raises:
        UserError: the evaluator lacks a function, or one takes other arguments.
    """
    keys = ("evaluator", "evaluator_args")
    given = config.get(*keys) or {}
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
        raise config.wrong(keys, given, "a mapping of names")
    for key, value in given.items():
        try:
            json.dumps(value, sort_keys=True)  # as `Setup` crosses to the referee
        except (TypeError, ValueError) as error:  # YAML has dates, sets and bytes too
            must_be = "a text, a number, true, false, null, or a list or mapping of these"
            raise config.wrong((*keys, key), value, f"{must_be}; put a date in quotes") from error
    for name, _ in stages:
        if name not in found.functions:
            raise UserError(
                f"{peer.evaluator}:1: defines no function {name}; define {name}(program_path), "
                f"which returns a dict with {METRIC}"
            )
        definition = found.functions[name]
        if definition is not None:
            _check_arguments(peer.evaluator, definition, given if name == "evaluate" else {})
    return given


def _check_arguments(
    path: Path, function: ast.FunctionDef | ast.AsyncFunctionDef, given: Mapping[str, Any]
) -> None:
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    required = names[: len(names) - len(arguments.defaults)]
    needed = [name for name in required[1:] if name not in given]
    needed += [
        each.arg
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None and each.arg not in given
    ]
    where = f"{path}:{function.lineno}: {function.name}()"
    if not names and arguments.vararg is None:
        raise UserError(f"{where} takes no argument; give it one, the program's path")
    if needed:
        raise UserError(
            f"{where} needs {', '.join(needed)} besides the program's path; give it a default, "
            "or a value under evaluator.evaluator_args in the configuration"
        )
    known = {*names[1:], *(each.arg for each in arguments.kwonlyargs)}
    unknown = [] if arguments.kwarg else sorted(set(given) - known)
    if unknown:
        raise UserError(f"{where} takes no {unknown[0]}; leave it out of evaluator_args")


def _joined_by(peer: PeerFolder, found: Scan) -> str:
    """Return why the evaluator can't be split from the program; empty if its source has nothing."""
    if peer.initial.suffix != ".py":
        return f"{peer.initial} is not Python"
    return str(found.joins[0]) if found.joins else ""


def _entry_point(tree: ast.Module, found: Scan) -> str:
    """Return the program's function, or class, that the evaluator mentions first."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = [node.name for node in tree.body if isinstance(node, kinds)]
    mentioned = [name for name in found.names if name in defined]
    return next(iter([*mentioned, *defined[-1:]]), "")


def _asked(task: str, entry_point: str) -> str:
    """Return the task, with the name that the evaluator looks for, where it does not have that."""
    if not entry_point or entry_point in task:
        return task
    return f"{task}\n\nThe program has to define `{entry_point}`, which the evaluator uses."


def _libraries(peer: PeerFolder, program: ast.Module) -> tuple[str, ...]:
    """Return what is imported once, for all evaluations of the evaluator and the program."""
    trees = (program, parsed(peer.evaluator, read(peer.evaluator)))
    top = [node for tree in trees for node in tree.body if isinstance(node, _IMPORTS)]
    names = {node.module or "" for node in top if isinstance(node, ast.ImportFrom)}
    names |= {each.name for node in top if isinstance(node, ast.Import) for each in node.names}
    return tuple(sorted(name for name in names if name.partition(".")[0] in _WARM))


def _say(peer: PeerFolder, config: Config, source: str, setup: Setup) -> None:
    _log.info("%s is a folder of %s; its task is from %s", peer.folder, peer.system, source)
    if setup.environment:
        names = ", ".join(setup.environment)  # without values: a log is read by others
        _log.info("%s: the evaluator is given the environment's %s", peer.evaluator, names)
    if [name for name, _ in setup.stages] == [_STAGES[0]]:
        _log.info(
            "%s: %s is all that is called, as no %s follows; with evaluator.cascade_evaluation: "
            "false in the configuration it is evaluate",
            *(peer.evaluator, *_STAGES[:2]),
        )
    ignored = sorted(str(key) for key in config.values if key not in _USED)
    if ignored:
        _log.info("%s: ignored, as this engine has its own: %s", config.path, ", ".join(ignored))
    if len(peer.configs) > 1:
        _log.info("%s is read, of %d configurations", config.path, len(peer.configs))

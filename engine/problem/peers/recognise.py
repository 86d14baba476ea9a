"""Which system a folder is of, and which of its files are what."""

import ast
from dataclasses import dataclass
from pathlib import Path

from engine.core import UserError
from engine.judge.setup import Contract
from engine.problem.declaration import read

OWN = ("problem.yaml", "statement.md")
"""A folder with one of these is a problem of this project's."""

_INITIALS = ("initial_program", "initial", "init_program", "program")
_TEXTS = ("initial_program", "initial", "initial_prompt")
"""Names of programs that may be texts, such as prompts, where there is no other."""
_EVALUATORS = ("evaluator.py", "evaluate.py", "evaluation.py", "eval.py")
_EVALUATOR_FOLDERS = ("", "evaluator", "evaluation")
_CONFIGS = ("config.yaml", "config.yml")
_TEXT_SUFFIXES = (".txt", ".md", ".yaml", ".yml", ".json", ".toml")
_NO_PROGRAMS = (*_TEXT_SUFFIXES, ".pyc", ".lock", ".orig", ".bak", ".log")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerFolder:
    """A problem's folder of another system.

    Attributes:
        system: its name.
        contract: how its evaluator is called; see ``engine.judge.contracts``.
        folder: the problem's.
        initial: the file of the initial program.
        evaluator: the evaluator's file.
        configs: its YAML files, the most telling one first.
        scripts: its Python files that begin a run.
    """

    system: str
    contract: Contract
    folder: Path
    initial: Path
    evaluator: Path
    configs: tuple[Path, ...]
    scripts: tuple[Path, ...]


def find(folder: Path) -> PeerFolder | None:
    """Return what a folder holds; None if it is a problem of this project's, or of nobody's.

    Raises:
        UserError: it is another system's, but has no initial program or no evaluator.
    """
    if not folder.is_dir() or any((folder / name).is_file() for name in OWN):
        return None
    initial, evaluator = _initial(folder), _evaluator(folder)
    if evaluator is None:
        _check_is_nobodys(folder, initial)
        return None
    if initial is None:
        raise UserError(
            f"{evaluator}: there is no program beside it to begin with; add initial_program.py, "
            "with # EVOLVE-BLOCK-START and # EVOLVE-BLOCK-END round what may change"
        )
    contract = _contract(evaluator)
    is_skydiscover = evaluator.parent != folder or (evaluator.parent / "wrapper.py").exists()
    system = "SkyDiscover" if is_skydiscover else "OpenEvolve"
    return PeerFolder(
        system="ShinkaEvolve" if contract == "shinka" else system,
        contract=contract,
        folder=folder,
        initial=initial,
        evaluator=evaluator,
        configs=_configs(folder),
        scripts=tuple(
            path
            for path in sorted(folder.glob("*.py"))
            if path not in (initial, evaluator) and "run" in path.stem.lower()
        ),
    )


def _initial(folder: Path) -> Path | None:
    """Return the initial program: Python, else in another language, else a text.

    Raises:
        UserError: it is a folder.
    """
    for stem in _INITIALS:
        found = [
            path
            for path in sorted(folder.glob(f"{stem}.*"))
            if path.is_file() and path.suffix not in _NO_PROGRAMS
        ]
        if found:
            return next((path for path in found if path.suffix == ".py"), found[0])
    texts = (folder / f"{stem}{suffix}" for stem in _TEXTS for suffix in _TEXT_SUFFIXES)
    text = next((path for path in texts if path.is_file()), None)
    whole = next((folder / stem for stem in _INITIALS if (folder / stem).is_dir()), None)
    if text is None and whole is not None and _evaluator(folder) is not None:
        raise UserError(
            f"{whole}: the initial program is a folder, which is not read in this format; give one "
            f"file, {whole.name}.py, or a problem.yaml and a folder initial/"
        )
    return text


def _evaluator(folder: Path) -> Path | None:
    found = [
        folder / part / name
        for part in _EVALUATOR_FOLDERS
        for name in _EVALUATORS
        if (folder / part / name).is_file()
    ]
    return found[0] if found else None


def _check_is_nobodys(folder: Path, initial: Path | None) -> None:
    """Raise a `UserError` for a folder that is a system's, but has no evaluator that can be run."""
    container = next((path for path in folder.rglob("evaluate.sh")), None)
    if container is not None:
        raise UserError(
            f"{container}: an evaluator in a container is not run; give an evaluator.py with "
            "evaluate(program_path), or a command in a problem.yaml"
        )
    if initial is not None and initial.stem == "initial_program":
        raise UserError(
            f"{initial}: there is no evaluator beside it; add evaluator.py with "
            "evaluate(program_path), which returns a dict with combined_score"
        )


def _contract(evaluator: Path) -> Contract:
    """Return how an evaluator is called, by what it defines and mentions."""
    text = read(evaluator)
    if "run_shinka_eval" in text or "--results_dir" in text or "--results-dir" in text:
        return "shinka"
    tree = parsed(evaluator, text)
    functions = {node.name: node for node in tree.body if isinstance(node, _FUNCTIONS)}
    has_entry = "evaluate" in _bound(tree)
    main = functions.get("main")
    is_script = main is not None and any("results" in each.arg for each in main.args.args)
    if is_script and not has_entry:
        return "shinka"
    takes_arguments = "sys.argv" in text or "argparse" in text
    return "script" if takes_arguments and not has_entry else "openevolve"


def _bound(tree: ast.Module) -> set[str]:
    """Return the names that a module binds at any depth."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.alias(name=name, asname=alias):
                found.add(alias or name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
    return {"evaluate", *found} if "*" in found else found


def parsed(path: Path, text: str) -> ast.Module:
    """Return the syntax tree of a Python file.

    Raises:
        UserError: it does not parse.
    """
    try:
        return ast.parse(text, str(path))
    except SyntaxError as error:
        raise UserError(f"{path}:{error.lineno}: does not parse: {error.msg}; mend it") from error
    except ValueError as error:
        raise UserError(f"{path}: does not parse: {error}; mend it") from error
    except (RecursionError, MemoryError) as error:
        raise UserError(f"{path}: is nested too deeply to be parsed; flatten it") from error


def _configs(folder: Path) -> tuple[Path, ...]:
    first = [folder / name for name in _CONFIGS if (folder / name).is_file()]
    others = [
        path
        for pattern in ("*.yaml", "*.yml", "config*/*.yaml", "config*/*.yml")
        for path in sorted(folder.glob(pattern))
        if path not in first
    ]
    return (*first, *others)

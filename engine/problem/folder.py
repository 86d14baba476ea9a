"""Loading a problem: its folder becomes a `Problem`."""

from pathlib import Path

from engine.core import Direction, Feature, Problem, UserError
from engine.problem.declaration import read, read_declaration
from engine.problem.evaluator import open_evaluator, read_stages
from engine.problem.fingerprint import fingerprint

FILES = ("problem.yaml", "statement.md", "initial.py", "evaluator.py")
POOL = "pool"
"""The folder of a problem's own pool."""


def shipped() -> dict[str, Path]:
    """Return the folders of the problems that come with the project, by name."""
    import evaluators

    root = Path(next(iter(evaluators.__path__)))
    return {path.parent.name: path.parent for path in sorted(root.glob("*/problem.yaml"))}


def load_problem(folder: Path, *, data: Path | None = None) -> Problem:
    """Load the problem in ``folder``, with the user's own ``data`` if it can read any.

    Raises:
        UserError: the folder is not a complete problem, or the data are not what it reads; the
            message names what is missing or wrong, and where.
    """
    listed = ", ".join(FILES)
    folder = folder.expanduser().resolve()
    if not folder.is_dir():
        raise UserError(f"problem folder {folder} does not exist; give a folder with {listed}")
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise UserError(f"problem folder {folder} has no {', '.join(missing)}; it needs {listed}")
    data = None if data is None else data.expanduser().absolute()
    if data is not None and not data.exists():
        raise UserError(f"data {data} does not exist; give data=PATH of a file or a folder")
    declared = read_declaration(folder / "problem.yaml")
    evaluator = open_evaluator(folder, data)
    initial_program = read(folder / "initial.py")
    try:
        compile(initial_program, str(folder / "initial.py"), "exec")
    except (SyntaxError, ValueError) as error:  # ValueError: a null character, before 3.12
        raise UserError(f"{folder / 'initial.py'} does not parse: {error}; mend it") from error
    return Problem(
        name=folder.name,
        folder=folder,
        statement=read(folder / "statement.md").strip(),
        initial_program=initial_program,
        stages=read_stages(evaluator, folder / "evaluator.py"),
        fingerprint=fingerprint(folder, data),
        **declared,
    )


def read_direction(folder: Path) -> Direction:
    """Return whether the problem in ``folder`` is maximised, without loading the rest of it.

    Raises:
        UserError: there is no such problem, or its declaration is not complete.
    """
    direction: Direction = read_declaration(folder / "problem.yaml")["direction"]
    return direction


def read_features(folder: Path) -> tuple[Feature, ...]:
    """Return the features that the problem in ``folder`` names, as `read_direction`."""
    features: tuple[Feature, ...] = read_declaration(folder / "problem.yaml")["features"]
    return features

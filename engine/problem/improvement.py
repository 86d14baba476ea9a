"""Whether a problem can have the solutions of its programs improved, as it declares."""

import ast
from collections.abc import Sequence
from pathlib import Path

from engine.core import IMPROVE, PERTURB, Case, Improvement, UserError
from engine.core.bundle import is_bundle
from engine.problem.initial import INITIAL_FILE, bound_names
from engine.problem.places import place_of_key
from engine.syntax.blocks import outline


def check_improvement(
    folder: Path, improvement: Improvement | None, cases: Sequence[Case], program: str
) -> None:
    """Check what a problem declares of improvement against the rest of it.

    Args:
        folder: the problem's, for the messages.
        improvement: as declared; None is always right.
        cases: of the full evaluation.
        program: the initial one.

    Raises:
        UserError: its evaluation is not one call without arguments, it has no such outputs, or the
            initial program lacks one of the contract's functions or has evolve blocks.
    """
    if improvement is None:
        return
    where = place_of_key(folder, "improvement")
    if len(cases) != 1 or cases[0].args or cases[0].kwargs:
        raise UserError(
            f"{where}: only a solution that depends on no input can be improved; leave "
            "improvement out, or give the entry point one case without arguments"
        )
    names = tuple(cases[0].outputs)
    first = names[: len(improvement.solution)]
    if improvement.solution != first:
        raise UserError(
            f"{where}: solution is {list(improvement.solution)}, but the case's first outputs are "
            f"{list(first)}; name those"
        )
    if is_bundle(program) or outline(program).open_files[0].has_blocks:
        raise UserError(
            f"{where}: an initial program of several files or with evolve blocks can't be given "
            "an entry point that improves; leave improvement out"
        )
    for function in (IMPROVE, PERTURB):
        if function not in bound_names(ast.parse(program)):
            raise UserError(
                f"{folder / INITIAL_FILE}: it defines no function {function!r}, which "
                f"{where} needs; define it, or leave improvement out"
            )

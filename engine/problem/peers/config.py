"""A YAML file of another system: values by their keys, and where each stands."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from engine.core import UserError
from engine.documents import compose_yaml, read_yaml
from engine.problem.declaration import one_line, read


class Config:
    """The file, or none at all."""

    def __init__(self, path: Path | None) -> None:
        """Read a file.

        Raises:
            UserError: it is no YAML, or no mapping.
        """
        self.path = path
        self._root: Any = None
        self.values: dict[Any, Any] = {}
        if path is None:
            return
        text = read(path)
        try:
            values = read_yaml(text)
            self._root = compose_yaml(text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            line = f":{mark.line + 1}" if mark else ""
            raise UserError(
                f"{path}{line}: is not valid YAML: {error.problem or one_line(error)}; mend it"
            ) from error
        except yaml.YAMLError as error:
            raise UserError(f"{path}: is not valid YAML: {one_line(error)}; mend it") from error
        if values is not None and not isinstance(values, dict):
            raise UserError(f"{path}:1: is no mapping; give KEY: VALUE lines")
        self.values = values or {}

    def get(self, *keys: str) -> Any:
        """Return the value behind nested keys; None if there is none.

        Raises:
            UserError: something on the way is no mapping.
        """
        value: Any = self.values
        for number, key in enumerate(keys):
            if value is None:
                return None
            if not isinstance(value, dict):
                raise self.wrong(keys[:number], value, "a mapping")
            value = value.get(key)
        return value

    def text(self, *keys: str) -> str | None:
        """Return a text, or None if there is none.

        Raises:
            UserError: it is no text.
        """
        value = self.get(*keys)
        if value is not None and not isinstance(value, str):
            raise self.wrong(keys, value, "a text")
        return value

    def flag(self, *keys: str) -> bool | None:
        """Return true or false, or None if there is none.

        Raises:
            UserError: it is neither.
        """
        value = self.get(*keys)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(keys, value, "true or false")
        return value

    def positive(self, *keys: str, below: float, least: float = 0) -> float | None:
        """Return a number, or None if there is none.

        Args:
            keys: where it stands.
            below: what it has to be below.
            least: and the least that it may be; it has to be above 0 in any case.

        Raises:
            UserError: it is no such number.
        """
        value = self.get(*keys)
        if value is None:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value < below or value < least:
            from_ = f"of at least {least:g}" if least else "above 0"
            raise self.wrong(keys, value, f"a number {from_} and below {below:,.0f}")
        return float(value)

    def numbers(self, *keys: str) -> tuple[float, ...] | None:
        """Return a list of numbers, or None if there is none.

        Raises:
            UserError: it is no such list.
        """
        value = self.get(*keys)
        if value is None:
            return None
        if not isinstance(value, list) or not all(
            isinstance(each, int | float) and not isinstance(each, bool) for each in value
        ):
            raise self.wrong(keys, value, "a list of numbers")
        try:
            return tuple(map(float, value))
        except OverflowError as error:  # of an int of hundreds of digits
            raise self.wrong(keys, value, "a list of numbers below 1e308") from error

    def wrong(self, keys: Sequence[str], value: object, must_be: str) -> UserError:
        """Return the error that says where a value stands and what it must be."""
        name = ".".join(keys)
        return UserError(f"{self.where(*keys)}: {name} is {value!r:.80}; it must be {must_be}")

    def where(self, *keys: str) -> str:
        """Return the file, and the line of a key if it is there."""
        node, line = self._root, None
        for key in keys:
            for name, value in getattr(node, "value", ()) if node is not None else ():
                if isinstance(name, yaml.ScalarNode) and name.value == key:
                    node, line = value, name.start_mark.line + 1
                    break
        return f"{self.path}" if line is None else f"{self.path}:{line}"

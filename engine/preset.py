"""What a method's preset comes to beside what else is given.

A preset is one of ``engine/conf/method``; what is given on the command line takes the place of what
it says. Two things do not follow from that alone, and are settled here: a policy that is given by
name brings its own parameters, and a run without a language model keeps a method's search.
"""

from collections.abc import Container, Mapping
from typing import Any

_OF_A_MODEL = ("operators", "mix", "temperature_min", "temperature_max", "failures")
"""Keys of ``search`` whose values in a method's preset are meant for a language model."""


def settle(
    method: dict[str, Any], plain: dict[str, Any], *, given: Container[str]
) -> dict[str, Any]:
    """Return the values of a run.

    Args:
        method: what was composed with the method's preset.
        plain: the same without it.
        given: keys that the command line gives.
    """
    values = _of_given_policies(method, given)
    if values["model"]["kind"] != "mutation":
        return values
    # The null hypothesis of the method: its search, with mutations in place of its operators.
    search = {**values["search"], **{key: plain["search"][key] for key in _OF_A_MODEL}}
    asked = ("prompts", "learning", "advisor", "tactics", "guidance")
    others = {key: plain[key] for key in asked}
    return {**values, "search": search, **others}


def _of_given_policies(values: dict[str, Any], given: Container[str]) -> dict[str, Any]:
    """Return values without a preset's parameters of the policies that are given by name."""

    def cleaned(part: Mapping[str, Any], path: str) -> dict[str, Any]:
        own = f"{path}policy" in given
        return {
            key: cleaned(value, f"{path}{key}.") if isinstance(value, dict) else value
            for key, value in part.items()
            if not own or f"{path}{key}" in given
        }

    return cleaned(values, "")

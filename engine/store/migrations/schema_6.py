"""From schema 6, of 21 November 2026, to 8: a program is a value, and so is an evaluation.

Schema 6 had a child's program as its text alone, and the evaluation's fields among a verdict's; a
call said why a parent was preferred whose prompt was cached, which no search does any more.
"""

from dataclasses import asdict
from typing import Any

from engine.syntax import read

_EVALUATION = ("score", "failure", "message", "metrics", "artifacts", "seconds", "peak_bytes")


def event(kind: str, fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return an event as schema 8 has it.

    Raises:
        KeyError, ValueError: it is none of schema 6.
    """
    if kind == "call":
        return kind, {name: value for name, value in fields.items() if name != "preference"}
    if kind == "child":
        return kind, {**fields, "program": _program(fields["program"])}
    if kind == "verdict":
        own = {name: value for name, value in fields.items() if name not in _EVALUATION}
        return kind, {**own, "evaluation": {name: fields[name] for name in _EVALUATION}}
    if kind == "screen_off":
        return "switched_off", fields
    return kind, fields


def _program(text: str | None) -> dict[str, Any] | None:
    """Return what is known of a program.

    Raises:
        ValueError: it is none, though the version that recorded it took it for one.
    """
    if text is None:
        return None
    found = read(text)
    if found is None:
        raise ValueError("a child's program is no Python that this version reads")
    return asdict(found)

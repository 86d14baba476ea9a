"""From schema 9 to 10: calls name the guidance that they begin with.

Schema 9 had that too from 23 November 2026 on, without another number.
"""

from typing import Any


def event(kind: str, fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return an event as schema 10 has it."""
    if kind == "call" and "guidance" not in fields:
        return kind, {**fields, "guidance": None}
    return kind, fields

"""The programs in an answer that is JSON, an object with a list of entries:

    {"responses": [{"code": "...", "probability": 0.5}, ...]}

Covers: reading whole answers and such as were cut off, of which the entries before the cut count.
Does not cover making a model keep to the form (`schema` says it to vLLM), or whether what an entry
holds is a program (``verbalized.py``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_DECODER = json.JSONDecoder()
_OPENING = re.compile(r'\s*\{\s*"responses"\s*:\s*\[\s*')
_COMMA = re.compile(r"\s*,\s*")
_AFTER_ENTRY = re.compile(r"\s*[],]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """One entry of an answer.

    Attributes:
        code: what stands for the program; empty for an entry that has no such text.
        probability: from 0 to 1; None for an entry that has no such number.
    """

    code: str
    probability: float | None


def schema(most: int) -> str:
    """Return the JSON schema of an answer with at most ``most`` entries, and at least one."""
    entry = {
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "probability": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "required": ["code", "probability"],
        "additionalProperties": False,
    }
    entries = {"type": "array", "items": entry, "minItems": 1, "maxItems": most}
    return json.dumps(
        {
            "type": "object",
            "properties": {"responses": entries},
            "required": ["responses"],
            "additionalProperties": False,
        }
    )


def responses(text: str) -> Iterator[Response]:
    """Yield the entries of an answer, in its order, up to where it ends or is not JSON.

    What is yielded of the start of an answer is the start of what is yielded of the whole.
    """
    before = _OPENING.match(text)
    while before is not None:
        try:
            entry, end = _DECODER.raw_decode(text, before.end())
        except (ValueError, RecursionError):
            return
        before = _COMMA.match(text, end)
        if not isinstance(entry, dict) and not _AFTER_ENTRY.match(text, end):
            return  # of a number this may be a part: 0 of 0E1
        yield _response(entry)


def _response(entry: object) -> Response:
    fields: dict[str, object] = entry if isinstance(entry, dict) else {}
    code, probability = fields.get("code"), fields.get("probability")
    if isinstance(probability, bool) or not isinstance(probability, int | float):
        probability = None
    return Response(
        code=code if isinstance(code, str) else "",
        probability=None
        if probability is None or not 0 <= probability <= 1
        else float(probability),
    )

"""A request to a run: its kinds, its form as a file, and what a hint may hold."""

import json
import unicodedata
from dataclasses import dataclass
from typing import Literal, get_args

from engine.core import UserError

Kind = Literal["pause", "resume", "stop", "hint"]
MOST_HINT = 2000
"""Characters of a hint."""
_LAYOUT = "\n\t"  # the control characters that a hint may hold


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is asked of a run.

    Attributes:
        kind: ``pause``: ask for no further call, until ``resume``; ``stop``: end in good order, as
            after Ctrl-C; ``hint``: show a text in the prompts to come.
        text: of a hint; empty to show none any more.
    """

    kind: Kind
    text: str = ""

    def encoded(self) -> bytes:
        """Return it as a file holds it."""
        return json.dumps({"kind": self.kind, "text": self.text}).encode()


def decoded(content: bytes) -> Request:
    """Return the request that a file holds.

    Raises:
        UserError: it holds none.
    """
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UserError("it is not JSON") from error
    if not isinstance(fields, dict) or {*fields} != {"kind", "text"}:
        raise UserError("it is no object with a kind and a text, and nothing else")
    if fields["kind"] not in get_args(Kind) or not isinstance(fields["text"], str):
        raise UserError(f"its kind is not one of {', '.join(get_args(Kind))}, or its text none")
    return Request(kind=fields["kind"], text=checked_hint(fields["text"]))


def checked_hint(text: str) -> str:
    r"""Return a hint as it is recorded: lines end with ``\n``, and no space is round it.

    Raises:
        UserError: it is too long, or holds what can't be seen.
    """
    text = text.replace("\r\n", "\n").strip()
    if len(text) > MOST_HINT:
        raise UserError(f"the hint has {len(text):,} characters; it may have {MOST_HINT:,}")
    for character in text:
        # Cc, Cf, Cs, Co, Cn: control characters, what reverses or hides text, half characters,
        # private and unknown ones. Zl and Zp end a line where a reader sees none.
        category = unicodedata.category(character)
        if (category[0] == "C" or category in ("Zl", "Zp")) and character not in _LAYOUT:
            raise UserError(
                f"the hint holds U+{ord(character):04X}, which can't be seen; remove it"
            )
    return text

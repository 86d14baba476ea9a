"""Fences round quoted text: what a program or an output holds can't end its own block."""

from __future__ import annotations

import re

_BACKTICKS = re.compile(r"`{3,}")


def fenced(language: str, text: str) -> str:
    """Return ``text``, letter by letter, between fences longer than any that it holds."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"

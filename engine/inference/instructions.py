"""Whether a model can be expected to do what it is asked in words, by what its folder says.

Operators that ask for a program in words need a model that was taught to follow instructions and is
large enough to write a program that way. What is looked at: a chat template, which models that were
taught have, and the number of parameters. The embedded model, 135 million, was taught and writes
next to no whole program (``docs/measured.md``); the smallest that the methods' papers use has 4
billion. Nothing is loaded.
"""

import json
from pathlib import Path
from typing import Any

from engine.inference.shape import parameters

FEWEST_BILLIONS = 3.0
"""Parameters, in billions, below which a model counts as small."""


def why_no_instructions(folder: Path) -> str | None:
    """Return why a model will hardly follow instructions, as an end of a sentence; None if it may.

    Raises:
        UserError: its ``config.json`` can't be read.
    """
    if not _has_chat_template(folder):
        return "has no chat template"
    count = parameters(folder)
    if count is not None and count < FEWEST_BILLIONS * 1e9:
        return f"is small ({count / 1e9:.2g} billion parameters, below {FEWEST_BILLIONS:g})"
    return None


def _has_chat_template(folder: Path) -> bool:
    if any(folder.glob("chat_template*")):
        return True
    try:
        config: Any = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and bool(config.get("chat_template"))

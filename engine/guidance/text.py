"""The text of guidance: where it begins, and what an answer makes of it."""

import re
from collections.abc import Callable

from engine.prompts.answer import apply_blocks
from engine.prompts.attempts import harmless

INITIAL_GUIDANCE = """\
Approaches to consider:
- none named yet
What is known about the problem:
- nothing beyond the task
Patterns of code that work well:
- none named yet
Mistakes to avoid:
- none named yet
"""
"""Where every island begins: the open headings that CodeEvolve's circle packing begins with (its
configurations with meta-prompting alone), in other words."""
_MARKED = re.compile(r"EVOLVE-BLOCK|^#:file ", re.MULTILINE)


def rewritten(old: str, answer: str, *, size: Callable[[str], int], most: int) -> str | None:
    """Return the guidance that an answer's search/replace blocks make of the old one.

    Args:
        old: that was shown.
        answer: the model's.
        size: returns how many tokens a text has.
        most: tokens that guidance may have.

    Returns:
        None where no block applies, nothing changes, it is empty or too long, or it has a line that
        marks a program's parts.
    """
    text = apply_blocks(old, answer)
    if text is None or _MARKED.search(text):
        return None
    text = harmless(text).strip() + "\n"
    return None if text in ("\n", old) or size(text) > most else text

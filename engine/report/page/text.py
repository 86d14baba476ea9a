"""Text of candidates and of a run's settings as people can be shown it."""

import re
import unicodedata

_PICTURES = 0x2400  # of the control characters
_UNUSUAL = re.compile(r"[^\n\t\x20-\x7e]")


def shown(text: str) -> str:
    """Return text in which everything can be seen, and nothing changes how the rest is read.

    Control characters are pictures of themselves; lone surrogates, and what reverses or hides text
    beside it (Boucher and Anderson, "Trojan Source", 2021), are their numbers.
    """
    return _UNUSUAL.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    character = found[0]
    number = ord(character)
    if number < 0x20:
        return chr(_PICTURES + number)
    if number == 0x7F:
        return "\u2421"
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        return f"\\u{{{number:x}}}"
    return character


def cut(text: str, most: int) -> str:
    """Return text of at most ``most`` characters; what was cut off is counted."""
    if len(text) <= most:
        return text
    return f"{text[:most]} … ({len(text) - most:,} more characters)"

"""Whether a program that is still being written can become one that parses.

Covers: Python text that ends at the end of a line. Does not cover where in an answer a program
stands (``answer.py``, ``diff.py``), or names that nothing defines: what follows may define them.
"""

from __future__ import annotations

import re
import warnings
from codeop import PyCF_ALLOW_INCOMPLETE_INPUT  # type: ignore[attr-defined]

_NAME = "<unfinished program>"
# The one error of the compiler's later passes that a later line can mend: the binding may follow.
_MENDED_LATER = "no binding for nonlocal"
_INCOMPLETE = "incomplete input"
_LOOKS = 8  # while a text doubles in length

# Once and for good, not round each call: `warnings.catch_warnings` is not safe in a thread.
warnings.filterwarnings("ignore", module=re.escape(_NAME))


def cannot_continue(source: str) -> bool:
    """Return whether no text that begins with ``source``, whole lines, is valid Python.

    Blanks at the end of ``source`` count as not written yet. Python's parser reads a token at a
    time and gives up at the first one that nothing fits; it says "incomplete input" if it had read
    all of the source by then. If it had not, it has seen no token that depends on what follows, so
    it gives up on every continuation too. The passes behind the parser report what is wrong with
    statements that are complete, but for a ``nonlocal`` name that may be bound later.

    Costs 5 to 20 microseconds a line.
    """
    try:
        compile(
            source.rstrip() + "\n",
            _NAME,
            "exec",
            flags=PyCF_ALLOW_INCOMPLETE_INPUT,
            dont_inherit=True,
        )
    except SyntaxError as error:
        message = error.msg or ""
        return message != _INCOMPLETE and not message.startswith(_MENDED_LATER)
    except ValueError:  # a null character
        return True
    except (RecursionError, MemoryError):
        return False
    return False


def is_due(lines: int) -> bool:
    """Return whether to look at a text that has just got its line number ``lines``.

    Up to line 16 each one is due, then every second one up to line 32, every fourth up to 64 and so
    on. So reading a text anew each time costs in all no more than reading it 16 times to its end,
    and an error is found before the text is a seventh longer.
    """
    step = 1 << max(0, (lines // _LOOKS).bit_length() - 1)
    return lines % step == 0

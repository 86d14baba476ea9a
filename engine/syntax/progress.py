"""Whether a program that is still being written can become one that parses.

Covers: Python text that ends at the end of a line. Does not cover where in an answer a program
stands (``answer.py``, ``diff.py``), or names that nothing defines: what follows may define them.
"""

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

    Blanks at the end of ``source`` count as not written yet. Python's parser reads one token at a
    time and gives up at the first one that does not fit. If it had read all of the source by then,
    it says "incomplete input". Otherwise no token that it saw depends on what follows, so it gives
    up on every continuation too. The compiler's later passes only complain of complete statements,
    with one exception: a ``nonlocal`` name may still be bound later.
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

    Each line is due up to line 16, then every second one up to line 32, every fourth one up to line
    64, and so on. So all these readings together cost no more than 16 readings of the whole text,
    and an error is found before the text has grown by a seventh.
    """
    step = 1 << max(0, (lines // _LOOKS).bit_length() - 1)
    return lines % step == 0

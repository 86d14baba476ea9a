"""What stops the engine for the user's sake.

Does not cover what candidates do wrong: `engine.core.evaluation`.
"""

from __future__ import annotations


class UserError(Exception):
    """Input that the user has to mend: one line that says what, where and what to do.

    The commands print it to standard error and exit with code 2.
    """

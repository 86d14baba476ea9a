"""Paths as people type them."""

from pathlib import Path

from engine.core import UserError


def expanded(path: Path, *, what: str, links: bool = False) -> Path:
    """Return a path without ``~`` or ``~somebody``.

    Args:
        path: as it was typed.
        what: it is the path of, for the message.
        links: whether it is followed to where it leads, too.

    Raises:
        UserError: somebody has no home here, or links lead in a circle.
    """
    try:
        return path.expanduser().resolve() if links else path.expanduser()
    except RuntimeError as error:
        said = str(error).rstrip(".")
        raise UserError(
            f"{what} {str(path)!r} can't be resolved: {said}; give another path"
        ) from error

"""The machine that each island was on last: it has the KV of the island's prompts.

Kept in the run's folder, so that a resumed run knows it too. Machines have the names that Ray gives
them, which last as long as the Ray cluster does. It is a hint: without it islands go where they end
first. So a file that can't be read or written is in nobody's way.
"""

import contextlib
import json
from pathlib import Path

from engine.documents import read_json

_NAME = "machines.json"


class LastNodes:
    """See the module."""

    def __init__(self, folder: Path) -> None:
        """Read what the last session left in a run's ``folder``, if it did and it can be read."""
        self._path = folder / _NAME
        try:
            found = read_json(self._path.read_text())
            self._nodes = {int(number): str(node) for number, node in found.items()}
        except (OSError, ValueError, AttributeError):
            self._nodes = {}

    def get(self, number: int) -> str:
        """Return the machine of an island; empty if none is known."""
        return self._nodes.get(number, "")

    def put(self, number: int, node: str) -> None:
        """Note that an island goes to a machine."""
        self._nodes[number] = node
        written = self._path.with_suffix(".new")
        with contextlib.suppress(OSError):
            written.write_text(json.dumps(self._nodes))
            written.replace(self._path)

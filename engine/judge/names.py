"""Names that a process notes, and the processes that are forked from it."""

import os
import tempfile


class Names:
    """A set of names in a file without a name."""

    def __init__(self) -> None:
        """Begin with none."""
        self._descriptor, path = tempfile.mkstemp(prefix="names-")
        os.unlink(path)  # noqa: PTH108
        self._own: set[str] = set()

    def add(self, name: str) -> None:
        """Note a name that has no white space."""
        if name not in self._own:
            self._own.add(name)
            # The offset is that of all processes, so nobody writes over another's.
            os.write(self._descriptor, f"{name}\n".encode())

    def __str__(self) -> str:
        size = os.fstat(self._descriptor).st_size
        return " ".join(sorted(set(os.pread(self._descriptor, size, 0).decode().split())))

"""A helper process that answers requests: one JSON object a line, there and back."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


class HelperProcess:
    """Starts ``command``; `ask` writes a line to it and waits for the answer. A context manager."""

    def __init__(
        self, command: Sequence[str], *, environment: Mapping[str, str], cwd: Path
    ) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD, **environment},
            cwd=cwd,
            text=True,
            start_new_session=True,  # so that `close` can end what it started
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Return the answer to ``request``.

        Raises:
            RuntimeError: the process ended instead; it said why on standard error.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self._process.args!r} ended, exit code {self._process.wait()}")
        result: dict[str, Any] = json.loads(answer)
        return result

    def close(self) -> None:
        """Kill the process and its children, whatever they are at."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, 9)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

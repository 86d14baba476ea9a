"""An evaluation file for OpenEvolve and SkyDiscover: hands each program to ``bench.judge``.

``bench.peer`` copies this file beside the judge's socket and names it to the peer, whose
environment has neither NumPy's numba kernels nor Brood; so it imports nothing but Python's own. The
peer calls `evaluate` with the path of a temporary file that has the program.
"""

from __future__ import annotations

import json
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

_SOCKET = str(Path(__file__).with_name("judge"))


def evaluate(program_path: str) -> dict[str, Any]:
    """Return the metrics of the program in a file, ``combined_score`` among them."""
    with Client(_SOCKET, family="AF_UNIX") as judge:
        judge.send_bytes(Path(program_path).read_bytes())
        answer: dict[str, Any] = json.loads(judge.recv_bytes())
    return answer

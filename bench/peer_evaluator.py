"""An evaluation file for the peers: hands each program to ``bench.judge``.

``bench.peer`` copies this file beside the judge's socket and names it to the peer, whose
environment has neither NumPy's numba kernels nor Brood; so it imports nothing but Python's own.
OpenEvolve and SkyDiscover call `evaluate` with the path of a temporary file that has the program.
ShinkaEvolve runs this file for each program, with the folder that takes what was found:

    python peer_evaluator.py --program_path FILE --results_dir FOLDER
"""

from __future__ import annotations

import argparse
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


def main() -> None:
    """Write what ShinkaEvolve reads: the metrics, and whether the program counts at all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--program_path", required=True)
    parser.add_argument("--results_dir", type=Path, required=True)
    given = parser.parse_args()
    metrics = evaluate(given.program_path)
    error = metrics.pop("error", None)
    score = metrics.pop("combined_score")
    found = {"combined_score": score, "public": metrics, "private": {}}
    given.results_dir.mkdir(parents=True, exist_ok=True)
    (given.results_dir / "metrics.json").write_text(json.dumps(found))
    verdict = {"correct": error is None, "error": error}
    (given.results_dir / "correct.json").write_text(json.dumps(verdict))


if __name__ == "__main__":
    main()

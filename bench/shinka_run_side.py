"""A whole search of ShinkaEvolve's: runs inside its own environment, for ``bench.peers``.

Usage: python shinka_run_side.py REQUEST, JSON with the fields of ``bench.peer.SearchRequest``.

Its defaults stand, but for what the request says, for whole-program rewrites instead of its mix
with diffs and crossovers, and for embeddings, which no model here can make: novelty is not judged.
The problem's statement is the task's message, as in its own examples, and the whole program is one
evolve block, without which it takes no rewrite. It has no seed of its own, so Python's and NumPy's
generators, which it draws from, get the request's; its tasks overlap, so that repeats nothing. The
request's ``workers`` mean nothing to it: it sets its own by the number of cores.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

os.environ["SHINKA_PRICING_MODE"] = "offline"  # read at import; else it asks the network for prices

from shinka.core import EvolutionConfig, ShinkaEvolveRunner
from shinka.database import DatabaseConfig
from shinka.launch import LocalJobConfig

_START, _END = "# EVOLVE-BLOCK-START\n", "# EVOLVE-BLOCK-END\n"


def configuration(request: dict[str, Any], program: Path) -> EvolutionConfig:
    """Return ShinkaEvolve's configuration for a request; ``program`` is the one to begin with."""
    return EvolutionConfig(
        task_sys_msg=request["statement"],
        patch_types=["full"],
        patch_type_probs=[1.0],
        num_generations=request["iterations"],
        llm_models=[f"local/{request['model']}@{request['url']}"],
        llm_kwargs={"temperatures": [0.0, 0.5, 1.0], "max_tokens": request["max_tokens"]},
        embedding_model=None,
        init_program_path=str(program),
        results_dir=request["output"],
    )


def main(arguments: list[str]) -> None:
    """Search until the iterations are done, or this process is ended."""
    request = json.loads(arguments[0])
    random.seed(request["seed"])
    np.random.seed(request["seed"])
    output = Path(request["output"])
    output.mkdir()
    program = output / "initial.py"
    program.write_text(f"{_START}{Path(request['program']).read_text().rstrip()}\n{_END}")
    ShinkaEvolveRunner(
        evo_config=configuration(request, program),
        job_config=LocalJobConfig(eval_program_path=request["evaluator"]),
        db_config=DatabaseConfig(db_path=str(output / "programs.sqlite")),
    ).run()


if __name__ == "__main__":
    main(sys.argv[1:])

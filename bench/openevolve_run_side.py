"""A whole search of OpenEvolve's: runs inside OpenEvolve's own environment, for ``bench.peers``.

Usage: python openevolve_run_side.py REQUEST, JSON with the fields of ``bench.peer.SearchRequest``.

Its defaults stand, but for what the request says and for whole-program rewrites instead of diffs.
The problem's statement is the system message, as in its own examples.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from openevolve import run_evolution
from openevolve.config import Config, LLMConfig, LLMModelConfig


def configuration(request: dict[str, Any]) -> Config:
    """Return OpenEvolve's configuration for a request."""
    config = Config(
        random_seed=request["seed"],
        diff_based_evolution=False,
        llm=LLMConfig(
            models=[LLMModelConfig(name=request["model"])],
            api_base=request["url"],
            api_key="none",
            max_tokens=request["max_tokens"],
        ),
    )
    config.prompt.system_message = request["statement"]
    config.evaluator.parallel_evaluations = request["workers"]
    return config


def main(arguments: list[str]) -> None:
    """Search until the iterations are done, or this process is ended."""
    request = json.loads(arguments[0])
    run_evolution(
        request["program"],
        request["evaluator"],
        config=configuration(request),
        iterations=request["iterations"],
        output_dir=request["output"],
        cleanup=False,
    )


if __name__ == "__main__":
    main(sys.argv[1:])

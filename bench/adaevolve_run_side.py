"""A whole search of AdaEvolve's: runs inside SkyDiscover's own environment, for ``bench.peers``.

Usage: python adaevolve_run_side.py REQUEST, JSON with the fields of ``bench.peer.SearchRequest``.

Its defaults stand, but for what the request says and for whole-program rewrites instead of diffs.
The problem's statement is the system message, as in its own examples. It makes one call after the
other, so the request's ``workers`` means nothing to it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from skydiscover import run_discovery
from skydiscover.config import (
    AdaEvolveDatabaseConfig,
    Config,
    LLMConfig,
    LLMModelConfig,
    SearchConfig,
)


def configuration(request: dict[str, Any]) -> Config:
    """Return SkyDiscover's configuration for a request."""
    # Given with the model itself: a model without an address of its own gets its provider's.
    address = {"api_base": request["url"], "api_key": "none"}
    config = Config(
        random_seed=request["seed"],
        diff_based_generation=False,
        search=SearchConfig(type="adaevolve", database=AdaEvolveDatabaseConfig()),
        llm=LLMConfig(
            models=[LLMModelConfig(name=request["model"], **address)],
            max_tokens=request["max_tokens"],
            **address,
        ),
    )
    config.prompt.system_message = request["statement"]
    return config


def main(arguments: list[str]) -> None:
    """Search until the iterations are done, or this process is ended."""
    request = json.loads(arguments[0])
    run_discovery(
        request["program"],
        request["evaluator"],
        config=configuration(request),
        iterations=request["iterations"],
        output_dir=request["output"],
        cleanup=False,
    )


if __name__ == "__main__":
    main(sys.argv[1:])

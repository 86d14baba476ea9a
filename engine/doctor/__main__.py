"""``python -m engine.doctor``: what would stop a run here, before it begins.

    python -m engine.doctor
    python -m engine.doctor problem=signal model=qwen3_coder_30b cache=lmcache

Takes the keys of a run and starts none. A line for each thing looked at: the machine, its limits
and disks, the problem, the walls of the sandbox, the packages, the model, its memory, the KV cache.
A line that begins with ``error`` says what would stop the run, one with ``warning`` what would slow
it or weaken it. Nothing is changed. Exit codes: 0; 1 if something would stop the run; 2 for bad
input.
"""

import logging
import sys
from collections import Counter
from collections.abc import Sequence

from engine import config
from engine.arguments import Arguments, execute
from engine.checking.finding import Level
from engine.doctor import examined


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    logging.getLogger("engine").setLevel(logging.ERROR)  # the findings say it
    return execute(_examine, arguments, keys=(), usage=__doc__ or "")


def _examine(given: Arguments) -> int:
    settings = config.resolve(given.rest)
    found: Counter[Level] = Counter()
    for finding in examined(settings):
        print(finding, flush=True)
        found[finding.level] += 1
    print(f"{found[Level.ERROR]} would stop a run, {found[Level.WARNING]} to look at")
    return 1 if found[Level.ERROR] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

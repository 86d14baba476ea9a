"""How far apart two programs are, without running them.

The Jaccard distance of their shingles: 1 - |A and B| / |A or B|, where A and B are the sets of runs
of three tokens that stand in each (Broder, "On the resemblance and containment of documents",
1997, section 2). 0 means the same shingles, 1 none in common. Layout does not count; comments do.
"""

from __future__ import annotations

import functools
import re

_LENGTH = 3
_TOKEN = re.compile(r"\w+|[^\w\s]")  # of whatever text: a child need not be a valid program
_KEPT = 4096  # programs whose shingles are kept: most are asked about with their children


def program_distance(program: str, other: str) -> float:
    """Return the distance of two programs, from 0 to 1."""
    own, others = _shingles(program), _shingles(other)
    either = len(own | others)
    return 1 - len(own & others) / either if either else 0.0


@functools.lru_cache(maxsize=_KEPT)
def _shingles(program: str) -> frozenset[tuple[str, ...]]:
    """Return the runs of three tokens; all tokens as one run where there are fewer."""
    tokens = _TOKEN.findall(program)
    last = max(1, len(tokens) - _LENGTH + 1) if tokens else 0
    return frozenset(tuple(tokens[i : i + _LENGTH]) for i in range(last))

"""Speculation: calls that begin on a guess of their parent, before the verdicts are in.

Extends ``engine.pipeline``'s calls, which know nothing of it: without this folder, and the
line that puts it on (``engine.assembly``), a run makes the same candidates, one call after the
other.
"""

from engine.speculation.calls import SpeculativeCalls

"""AdaEvolve's measure of an improvement, relative to what was there before.

    delta = min(1, (score - best) / (|reference| + 1e-8)) if it is better than the best, else 0;

1 where there was none before. The reference is the best itself where an island judges its own
progress, and the best of all islands where islands are compared.

Source: Cemri et al., "AdaEvolve: adaptive LLM driven zeroth-order optimization", 2026, and its
code. What a difference means depends on where the scores' zero is, as it does there.
"""

from __future__ import annotations

from engine.core import Direction

_EPSILON = 1e-8


def relative_gain(
    score: float | None, *, best: float | None, reference: float | None, direction: Direction
) -> float:
    """Return delta, from 0 to 1.

    Args:
        score: of the new program; None if it got none, which improves nothing.
        best: that it has to be better than; None if there is none yet.
        reference: what the difference is a share of; None as ``best``.
        direction: of the scores.
    """
    if score is None:
        return 0.0
    if best is None or reference is None:
        return 1.0
    if not direction.better(score, best):
        return 0.0
    return min(1.0, abs(score - best) / (abs(reference) + _EPSILON))

"""The ``signal`` problem: smooth five noisy signals with little lag.

The signals and their conventions are in ``cases``, the metrics in ``kernels.signal``. Stricter than
the public evaluators: a wrong length fails, and so does a program that fails on one signal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.core import Case, Outputs

from .cases import score_signals, signal_case, signals


def cases() -> Sequence[Case]:
    """Return one case for each of the five signals."""
    return [signal_case(given.name, given.noisy) for given in signals()]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Score the filtered signals; see `cases.score_signals`."""
    return score_signals(outputs)

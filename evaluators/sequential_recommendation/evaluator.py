"""The ``sequential_recommendation`` problem: rank a catalogue by what each user watches next.

Rules, data and metrics are in ``kernels.recommendation_cases``, ``kernels.recommendation_data`` and
``kernels.recommendation``. ``data=FILE`` is an interaction file of KuaiRec 2.0; without it the
problem runs on a small generated set, whose scores can't be compared with published ones.
"""

from __future__ import annotations

from pathlib import Path

from kernels.recommendation_cases import Evaluator, open_data


def with_data(path: Path | None) -> Evaluator:
    """Return the problem on the interactions in ``path``, or on generated ones."""
    return open_data(path)

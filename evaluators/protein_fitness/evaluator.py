"""The ``protein_fitness`` problem: from single and double mutants to those of higher order.

Rules, data and metrics are in ``kernels.fitness_cases``, ``kernels.fitness_data`` and
``kernels.fitness``. ``data=FOLDER`` is the ``data/benchmark`` folder of MULTI-evolve; without it
the problem runs on small generated proteins, whose scores can't be compared with published ones.
"""

from __future__ import annotations

from pathlib import Path

from kernels.fitness_cases import Evaluator, open_data


def with_data(path: Path | None) -> Evaluator:
    """Return the problem on the proteins in ``path``, or on generated ones."""
    return open_data(path)

"""Seed pools: programs that other runs or people made, for a run to start from.

`seeds` has them read (``reading``), evaluated, clustered and mixed (``allocation``), and says with
which of them each island begins. ``python -m engine.pool export`` writes the best programs of runs
as a pool.
"""

from engine.pool.allocation import allocate
from engine.pool.reading import PoolProgram, PoolReading, Unusable, judged, read_pool
from engine.pool.seeding import seeds

__all__ = ["PoolProgram", "PoolReading", "Unusable", "allocate", "judged", "read_pool", "seeds"]

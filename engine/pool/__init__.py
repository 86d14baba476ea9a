"""Seed pools: programs that other runs or people made, for a run to start from.

`read_pool` reads them; `seeds` has them evaluated, clustered and mixed, and says with which of them
each island begins. ``python -m engine.pool export`` writes the best programs of runs as a pool.
"""

from engine.pool.reading import PoolReading, read_pool
from engine.pool.seeding import seeds

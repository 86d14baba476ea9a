"""The live page: the runs of a folder in a browser while they go on, and a hand on their wheel.

Everything is read from the stores, by connections that can't write. What is asked of a run goes
through ``engine.steering``, and only with the token of this process.

Does not cover the figures and their looks (``engine.report``).
"""

from engine.dashboard.app import make_app
from engine.dashboard.runs import WatchedRuns

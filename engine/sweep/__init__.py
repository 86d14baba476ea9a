"""Sweeps: a run for every combination of values, one after the other.

`plan` says which runs there are and writes them down; `process` starts a process for those that can
share a loaded model, and ``__main__`` is that process; `comparison` sets the runs side by side.
"""

from engine.sweep.plan import is_sweep, plan, read_sweep
from engine.sweep.process import run_all

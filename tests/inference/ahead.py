"""By how many steps vLLM is ahead of what it returns."""

from engine.inference import is_cpu_build

AHEAD = 0 if is_cpu_build() else 1
"""On a GPU it begins a step before it returns what the one before has computed."""

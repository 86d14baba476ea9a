"""From the command line to `RunSettings`: the only place that knows Hydra.

Covers: composing the groups under ``engine/conf``, offering every folder in ``evaluators`` as a
problem, errors that list the valid keys and values, sweeps, and saving a run's settings and reading
them back, on another machine too. Does not cover which values are allowed: ``engine.settings``.
"""

from engine.config.composing import GROUPS, composed, expand, options, resolve
from engine.config.overrides import quoted
from engine.config.saved import load, load_recorded, load_resumed, load_run, save

__all__ = [
    "GROUPS",
    "composed",
    "expand",
    "load",
    "load_recorded",
    "load_resumed",
    "load_run",
    "options",
    "quoted",
    "resolve",
    "save",
]

"""From the command line to `RunSettings`: the only place that knows Hydra.

Covers: composing the groups under ``engine/conf``, offering every folder in ``evaluators`` as a
problem, errors that name valid keys and values, sweeps, and saving a run's settings and reading
them back, on another machine too, with what its problem says of scores. Does not cover which values
are allowed: ``engine.settings``.
"""

from engine.config.composing import GROUPS, composed, expand, options, resolve
from engine.config.overrides import quoted
from engine.config.recorded import check_folders, recorded_scores
from engine.config.saved import load, load_recorded, load_resumed, load_run, save

__all__ = [
    "GROUPS",
    "check_folders",
    "composed",
    "expand",
    "load",
    "load_recorded",
    "load_resumed",
    "load_run",
    "options",
    "quoted",
    "recorded_scores",
    "resolve",
    "save",
]

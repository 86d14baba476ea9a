"""Stands for ShinkaEvolve's core, as far as evaluators import it."""

from .wrap_eval import run_shinka_eval as run_shinka_eval

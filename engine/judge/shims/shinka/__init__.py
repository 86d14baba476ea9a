"""Stands for ShinkaEvolve, as far as evaluators import it."""

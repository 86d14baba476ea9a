"""Stands for SkyDiscover, as far as evaluators import it."""

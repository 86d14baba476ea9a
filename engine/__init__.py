"""Brood: an engine for LLM-guided program search that owns the inference stack."""

from importlib.metadata import version

__version__ = version("brood")

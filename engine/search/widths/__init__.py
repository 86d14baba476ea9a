"""Widths: how many children a call asks for. A file for each policy; ``policy`` is their contract.

``siblings`` and ``call_cost`` are what ``cost_aware`` learns.
"""

from engine.search.widths.policy import WIDTHS, IterationOutcome, WidthPolicy, WidthSettings

__all__ = ["WIDTHS", "IterationOutcome", "WidthPolicy", "WidthSettings"]

"""Report: what people are shown of a run; reads a run's history and changes none of it."""

from engine.report.summary import summarise, warmer_parents, write_results
from engine.report.terminal import Display, print_result

__all__ = ["Display", "print_result", "summarise", "warmer_parents", "write_results"]

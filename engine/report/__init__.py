"""Report: what people are shown of a run; reads a run's history and changes none of it."""

from engine.report.summary import summarise, write_results
from engine.report.terminal import Display, print_result

"""What recorded runs hold, as rows: what the figures draw and what ``data=FOLDER`` keeps.

Covers: every program, what became of children and of prompt tokens over time, islands, archives,
steps of training, ideas, and in what settings runs differ. All rows are whole: thinning is the
figures' own. Seconds are wall seconds summed over a run's sessions, scores the problem's own.
"""

from collections.abc import Callable, Mapping, Sequence

from engine.report.analysis import RunRecord, learning, progress
from engine.report.analysis.figures import Table
from engine.report.tables.archives import archive
from engine.report.tables.busy import busy
from engine.report.tables.calls import calls
from engine.report.tables.ideas import ideas
from engine.report.tables.islands import arrivals, islands
from engine.report.tables.overview import overview
from engine.report.tables.programs import programs
from engine.report.tables.rates import operators, rules, widths
from engine.report.tables.settings import Group, differences, grouped_runs
from engine.report.tables.spans import outcomes, prompts

TABLES: Mapping[str, Callable[[Sequence[RunRecord]], Table]] = {
    "runs": overview,
    "settings": differences,
    "programs": programs,
    "calls": calls,
    "bests": lambda runs: progress(runs)["points"],
    "outcomes": outcomes,
    "prompts": prompts,
    "busy": busy,
    "widths": widths,
    "operators": operators,
    "rules": rules,
    "islands": islands,
    "arrivals": arrivals,
    "archive": archive,
    "updates": lambda runs: learning(runs)["updates"],
    "ideas": ideas,
}
"""The tables by the names of their files."""

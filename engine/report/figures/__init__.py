"""Figures of recorded runs: each a function from rows of ``engine.report.tables`` to a `Figure`.

A figure draws no more than some thousand marks, however long the run; what it draws of more is
thinned, and it says so. Importing this package needs Altair.
"""

from engine.report.figures.figure import Figure
from engine.report.figures.progress import Aims
from engine.report.figures.runs import figures_across, figures_of, path_of

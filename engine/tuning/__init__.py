"""Tuning: the numbers of a program, moved by CMA-ES while its structure stays.

Nothing here runs a program: `Tuner` asks for programs and is told their scores.
"""

from engine.tuning.constants import Constant, constants_of, with_values
from engine.tuning.tuner import Sample, Tuner, import_cma

"""Checks of a problem: does it measure what it is meant to, and can it be gamed?

`check_problem` yields what it finds, one `Finding` at a time. `texts` looks at what the folder
says, `runs` runs the initial program several times, `outputs` and `state` call the score with
answers that nobody worked out, `cheats` runs the programs of the folder ``cheats``, and `stages`
compares the cheap stages with the full evaluation. `trials` runs programs, by the door that a run
uses too.

What a check does not find may still be there: a search looks longer than it does.
"""

from engine.checking.finding import Finding, Level
from engine.checking.problem import RUNS, check_problem

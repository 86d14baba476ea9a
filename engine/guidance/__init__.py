"""Guidance: what prompts say of how to go about a problem, which the model itself rewrites.

CodeEvolve (arXiv 2510.14150) calls it meta-prompting. Each island has a population of guidance
beside its programs. A call that explores, or makes the first population, takes a piece of guidance
and has it rewritten by search/replace blocks, given a program and its score; the program is then
asked for with the new one. Other calls take one of those that led to good programs. What is written
is recorded before the child (`engine.core.Guidance`), and what came of it follows from the log
(``engine.store.guidance``).

The task's statement stays as it is: guidance stands beside it, and can't change what is asked for.
"""

from engine.guidance.operator import GuidedOperator, guided
from engine.guidance.requests import GuidedRequests

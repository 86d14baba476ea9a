"""Mutations of programs without a model: the null hypothesis that any LLM search has to beat.

Also a fast proposer for tests, whose children follow from the run's seed alone.
"""

from engine.mutation.model import MutationModel
from engine.mutation.mutate import mutated

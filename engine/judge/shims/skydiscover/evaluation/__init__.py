"""Stands for SkyDiscover's evaluation, as far as evaluators import it."""

from .evaluation_result import EvaluationResult as EvaluationResult

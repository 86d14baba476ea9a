"""Prompts: what the model is asked, and how its answers are read."""

from __future__ import annotations

from collections.abc import Mapping

from engine.core import Problem
from engine.prompts.chat import Crossover, Diff, Repair, Rewrite
from engine.prompts.infill import Infill
from engine.prompts.mutation import Mutation
from engine.prompts.operator import Operator, Parsing, Tokenizer
from engine.prompts.verbalized import Verbalized
from engine.settings import PromptSettings

__all__ = [
    "Crossover",
    "Diff",
    "Infill",
    "Mutation",
    "Operator",
    "Parsing",
    "Repair",
    "Rewrite",
    "Tokenizer",
    "Verbalized",
    "make_operators",
]


def make_operators(
    *, problem: Problem, tokenizer: Tokenizer, max_tokens: int, prompts: PromptSettings
) -> Mapping[str, Operator]:
    """Return every operator by name; ``max_tokens`` bounds answers that are whole programs."""
    chat = {
        operator.name: operator(
            problem=problem, tokenizer=tokenizer, max_tokens=max_tokens, prompts=prompts
        )
        for operator in (Rewrite, Diff, Crossover, Repair, Verbalized)
    }
    return {
        "infill": Infill(problem=problem, tokenizer=tokenizer, prompts=prompts),
        "mutation": Mutation(tokenizer=tokenizer, max_tokens=max_tokens),
        **chat,
    }

"""Prompts: what the model is asked, and how its answers are read."""

from __future__ import annotations

from collections.abc import Mapping

from engine.core import Problem
from engine.prompts.chat import Diff, Rewrite
from engine.prompts.infill import Infill
from engine.prompts.operator import Operator, Tokenizer

__all__ = ["Diff", "Infill", "Operator", "Rewrite", "Tokenizer", "make_operators"]


def make_operators(
    *, problem: Problem, tokenizer: Tokenizer, max_tokens: int
) -> Mapping[str, Operator]:
    """Return every operator by name; ``max_tokens`` bounds the answers of the chat operators."""
    return {
        "infill": Infill(problem=problem, tokenizer=tokenizer),
        "rewrite": Rewrite(problem=problem, tokenizer=tokenizer, max_tokens=max_tokens),
        "diff": Diff(problem=problem, tokenizer=tokenizer, max_tokens=max_tokens),
    }

"""Completions, and a request's response to one, parsed as the loop has it parsed."""

from dataclasses import replace
from typing import Any

from engine.core import Generation
from engine.pipeline import Request, Response


def receive(request: Request, generation: Generation) -> Response:
    """Return the response that a completion makes; of a dropped request nothing is parsed."""
    return request.receive(generation, () if request.is_dropped else request.parsing(generation)())


def completion(index: int = 0, text: str = "y = 2\n", **changes: Any) -> Generation:
    """Return the completion of one child: three tokens, one of its prompt's three cached."""
    whole = Generation(
        index=index,
        text=text,
        token_ids=(4, 5, 6),
        finish_reason="stop",
        prompt_tokens=3,
        cached_prompt_tokens=1,
        llm_seconds=0.25,
    )
    return replace(whole, **changes)

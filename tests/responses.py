"""A request's response to a completion, parsed as the loop has it parsed."""

from __future__ import annotations

from engine.core import Generation
from engine.pipeline import Request, Response


def receive(request: Request, generation: Generation) -> Response:
    """Return the response that a completion makes; of a dropped request nothing is parsed."""
    return request.receive(generation, () if request.is_dropped else request.parsing(generation)())

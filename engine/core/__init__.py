"""The values that travel between the parts of the engine.

Covers: what a problem is, and the small frozen records that each step of the loop hands to the
next one (ask, compose, generate, parse, evaluate, tell). Nothing here decides, reads a file or
imports another part of the engine, so every part may import this one.
"""

from __future__ import annotations

from engine.core.candidate import INITIAL, Attempt, Candidate, Pending
from engine.core.errors import UserError
from engine.core.evaluation import Evaluation, Failure
from engine.core.feature import Feature
from engine.core.generation import Generation, Miss, Parsed, Refusal
from engine.core.problem import (
    SECONDS,
    Array,
    ArraySpec,
    Case,
    Direction,
    KnownScore,
    Limits,
    Outputs,
    Problem,
    Rejected,
    Score,
    Stage,
)
from engine.core.program import Program
from engine.core.prompt import Block, ChatFrame, Gap, Part, Prompt
from engine.core.proposal import Proposal, Turn
from engine.core.switched_off import SwitchedOff

__all__ = [
    "INITIAL",
    "SECONDS",
    "Array",
    "ArraySpec",
    "Attempt",
    "Block",
    "Candidate",
    "Case",
    "ChatFrame",
    "Direction",
    "Evaluation",
    "Failure",
    "Feature",
    "Gap",
    "Generation",
    "KnownScore",
    "Limits",
    "Miss",
    "Outputs",
    "Parsed",
    "Part",
    "Pending",
    "Problem",
    "Program",
    "Prompt",
    "Proposal",
    "Refusal",
    "Rejected",
    "Score",
    "Stage",
    "SwitchedOff",
    "Turn",
    "UserError",
]

"""The values that travel between the parts of the engine.

Covers: what a problem is, the small frozen records that each step of the loop hands to the next one
(ask, compose, generate, parse, evaluate, tell), and the events that record them. Nothing here
decides, reads a file or imports another part of the engine, so every part may import this one.
"""

from engine.core.events import (
    Advice,
    Call,
    Child,
    Consultation,
    Event,
    Fill,
    GivenUp,
    Guidance,
    Hint,
    Idea,
    Migrant,
    Miss,
    Novelty,
    Question,
    Refusal,
    SampledFrom,
    Seed,
    Sent,
    Session,
    SwitchedOff,
    Tactics,
    Update,
    Verdict,
)
from engine.core.improvement import IMPROVE, PERTURB, Improvement
from engine.core.problem import (
    FULL,
    JUDGED,
    SECONDS,
    Array,
    ArraySpec,
    Case,
    Direction,
    Feature,
    Judge,
    JudgeKind,
    KnownScore,
    Limits,
    Outputs,
    Problem,
    Rejected,
    Score,
    Stage,
)
from engine.core.program import (
    FIRST_ITERATION,
    INITIAL,
    Attempt,
    Candidate,
    Cell,
    Evaluation,
    Failure,
    Pending,
    Place,
    Program,
)
from engine.core.prompt import (
    GIVEN_UP,
    Block,
    ChatFrame,
    Gap,
    Generation,
    Parsed,
    Part,
    Prompt,
)
from engine.core.proposal import Proposal, Turn


class UserError(Exception):
    """Input that the user has to mend: one line that says what, where and what to do.

    The commands print it to standard error and exit with code 2.
    """


class ProcessUnfitError(UserError):
    """Nothing can go on in this process, whatever it is given; in another one it may."""

"""What a run writes down: sixteen kinds of events, each with a subject that it has once.

Of a call and its children they hold what TurboEvolve logs (section 6, "Logging and definitions"):
island, iteration, parent and programs shown, K, and for each child its rank, what became of it, its
score and its cell. The improvement is the score's difference from the parent's.

Does not cover how they are kept (``engine.store``), or what follows from them: `RunHistory` there,
and `engine.pipeline.RunState`.
"""

from engine.core.events.advice import Advice, Consultation, Idea, Novelty, Question
from engine.core.events.call import Call, GivenUp, SampledFrom
from engine.core.events.child import Child, Miss, Refusal
from engine.core.events.guidance import Guidance, Tactics
from engine.core.events.migration import Migrant, Sent
from engine.core.events.program import Fill, Seed, SwitchedOff, Verdict
from engine.core.events.session import Hint, Session
from engine.core.events.update import Update

Event = (
    Session
    | Seed
    | Call
    | Idea
    | Advice
    | Guidance
    | Child
    | Verdict
    | SwitchedOff
    | GivenUp
    | Update
    | Hint
    | Fill
    | Tactics
    | Sent
    | Migrant
)

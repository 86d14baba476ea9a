"""The pipeline: what the loop keeps of the calls and candidates that are under way at once."""

from engine.pipeline.calls import Calls
from engine.pipeline.flight import Flight
from engine.pipeline.landing import Landing
from engine.pipeline.limits import Limits, Load
from engine.pipeline.reader import Reader
from engine.pipeline.state import RunState

__all__ = ["Calls", "Flight", "Landing", "Limits", "Load", "Reader", "RunState"]

"""The pipeline: what the loop keeps of the calls and candidates that are under way at once."""

from engine.pipeline.back_pressure import BackPressure, Load, LoadWatch
from engine.pipeline.calls import Calls
from engine.pipeline.reader import Reader
from engine.pipeline.request import Request, Response
from engine.pipeline.requests import Requests
from engine.pipeline.state import RunState

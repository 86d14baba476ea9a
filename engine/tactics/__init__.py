"""Tactics: the model is asked what to try next, beside the calls, and calls are shown its ideas.

When it is asked and which idea a call is shown is the search's to say (``engine.search.tactics``);
here are the question, the answer and the request at the model.
"""

from engine.tactics.requests import TacticalRequests

"""Steering: what somebody who watches a run asks of it while it goes on.

One side leaves a request as a file in the run's folder (`leave`), the other side, the process that
works on the run, takes it up in the loop's next turn (`Steering`). So a page needs no connection to
a run, and a run has no open port.

Does not cover who may leave a request (``engine.dashboard``), or what a prompt makes of a hint
(``engine.prompts``).
"""

from engine.steering.request import MOST_HINT, Request, checked_hint, decoded
from engine.steering.requests import is_paused, leave
from engine.steering.steering import Steering

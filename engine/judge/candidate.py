"""``python -m engine.judge.candidate CHANNEL``: run a program for an evaluator at the other end.

CHANNEL is a stream socket's descriptor. The process ends when the other end is closed. It reads no
file, and needs no right but to compute; whoever starts it puts the walls round it.
"""

import random
import sys

import numpy as np

from engine.judge.frames import Channel
from engine.judge.link import Link
from engine.judge.program import CandidateManners


def serve(descriptor: int) -> None:
    """Answer the evaluator at the other end of a socket until that is closed."""
    random.seed(0)  # every candidate starts from the same state
    np.random.seed(0)
    manners = CandidateManners()
    manners.link = Link(Channel(descriptor), manners)
    manners.link.serve()


if __name__ == "__main__":
    serve(int(sys.argv[1]))

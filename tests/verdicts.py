"""One program and its verdict, and the walls round it."""

import logging
import logging.handlers
import queue
import re

from engine.core import Evaluation
from engine.evaluation import EvaluatorPool


def evaluate(pool: EvaluatorPool, program: str) -> Evaluation:
    """Return the verdict of a program's full evaluation by a pool that has nothing else to do."""
    pool.submit(candidate_id="program", program=program)
    ((_, evaluation),) = pool.completed(timeout=None)
    return evaluation


def walls_missing(pool: EvaluatorPool) -> set[str]:
    """Return the walls that this machine lacks, as a pool says in its log."""
    said = queue.SimpleQueue[logging.LogRecord]()
    handler = logging.handlers.QueueHandler(said)
    logger = logging.getLogger("engine.evaluation.pool")
    logger.addHandler(handler)
    pool.check_walls(strict=False)
    logger.removeHandler(handler)
    texts = [said.get().getMessage() for _ in range(said.qsize())]
    found = [re.match(r"the sandbox lacks a wall, (\w+)", text) for text in texts]
    return {match[1] for match in found if match}

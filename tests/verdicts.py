"""One program and its verdict."""

from engine.core import Evaluation
from engine.evaluation import EvaluatorPool


def evaluate(pool: EvaluatorPool, program: str) -> Evaluation:
    """Return the verdict of a program's full evaluation by a pool that has nothing else to do."""
    pool.submit(candidate_id="program", program=program)
    ((_, evaluation),) = pool.completed(timeout=None)
    return evaluation

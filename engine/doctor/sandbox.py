"""The problem, and the walls that stand round its programs here: a worker is started to see."""

import logging
from collections.abc import Iterator

from engine.checking.finding import Finding, doubtful, good, wrong
from engine.core import Problem, UserError
from engine.evaluation import evaluator_cores, open_pool
from engine.parts import read_problem
from engine.settings import RunSettings


def problem_and_walls(settings: RunSettings) -> Iterator[Finding]:
    """Yield whether the problem loads, and which walls stand."""
    try:
        problem = read_problem(settings)
    except UserError as error:
        yield wrong("problem", str(error), where="", remedy="")
        return
    yield good("problem", f"{problem.name} in {problem.folder}")
    yield from _walls(settings, problem)


def _walls(settings: RunSettings, problem: Problem) -> Iterator[Finding]:
    said = _Said()
    log = logging.getLogger("engine.evaluation")
    level, propagates = log.level, log.propagate
    log.addHandler(said)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        with open_pool(problem=problem, workers=1, cores=evaluator_cores(1)) as pool:
            pool.check_walls(strict=settings.evaluation.strict)
    except UserError as error:
        yield wrong("walls", str(error), where="", remedy="")
        return
    finally:
        log.removeHandler(said)
        log.setLevel(level)
        log.propagate = propagates
    for each in said.records:
        if each.levelno >= logging.WARNING:
            yield doubtful("walls", each.getMessage(), where="", remedy="see docs/safety.md")
        else:
            yield good("walls", each.getMessage())


class _Said(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`."""
        self.records.append(record)

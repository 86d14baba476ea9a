"""All findings, in the order in which a run would meet them."""

from collections.abc import Iterator

from engine.checking.finding import Finding, wrong
from engine.core import UserError
from engine.doctor.machine import disks, limits, machine
from engine.doctor.model import cache, memory, model
from engine.doctor.packages import packages
from engine.doctor.sandbox import problem_and_walls
from engine.settings import RunSettings
from engine.watching import check_watching


def examined(settings: RunSettings) -> Iterator[Finding]:
    """Yield what is found for a run with some settings; nothing is changed."""
    yield from machine()
    yield from limits()
    yield from disks(settings)
    yield from problem_and_walls(settings)
    yield from packages(settings)
    yield from model(settings)
    yield from memory(settings)
    yield from cache(settings)
    try:
        check_watching(settings)
    except UserError as error:
        yield wrong("watching", str(error), where="", remedy="")

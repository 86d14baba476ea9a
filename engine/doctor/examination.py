"""All findings, in the order in which a run would meet them."""

from collections.abc import Callable, Collection, Iterator, Mapping

from engine.advisor import key_of
from engine.api.new_run import NewRun
from engine.checking.finding import Finding, wrong
from engine.core import UserError
from engine.doctor.machine import disks, limits, machine
from engine.doctor.model import cache, memory, model
from engine.doctor.packages import packages
from engine.doctor.sandbox import problem_and_walls
from engine.settings import RunSettings
from engine.store import check_server
from engine.watching import check_watching


def examined(settings: RunSettings) -> Iterator[Finding]:
    """Yield what is found for a run with some settings; nothing is changed."""
    said = []
    for finding in _looked_at(settings):
        said.append(finding.message)
        yield finding
    yield from _begun(settings, said=said)


def _looked_at(settings: RunSettings) -> Iterator[Finding]:
    """Yield what is found where something can be said of what is good, too."""
    yield from machine()
    yield from limits()
    yield from disks(settings)
    yield from problem_and_walls(settings)
    yield from packages(settings)
    yield from model(settings)
    yield from memory(settings)
    yield from cache(settings)
    checks: Mapping[str, Callable[[], object]] = {
        "store": lambda: check_server(settings.store, names=[settings.name or "a run"]),
        "advisor": lambda: key_of(settings.advisor),
        "watching": lambda: check_watching(settings),
    }
    for name, check in checks.items():
        try:
            check()
        except UserError as error:
            yield wrong(name, str(error), where="", remedy="")


def _begun(settings: RunSettings, *, said: Collection[str]) -> Iterator[Finding]:
    """Yield what a run that begins would be refused for, if that was not said yet."""
    try:
        NewRun.checked(settings, problem=None, stored_as=None)
    except UserError as error:
        if str(error) not in said:
            yield wrong("run", str(error), where="", remedy="")

"""What several test modules share: how tests are shared out, and a run's folder."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from servers import Server, installed, running
from xdist.scheduler import LoadScopeScheduling

from engine import config
from engine.core import INITIAL, Evaluation
from engine.evaluation import evaluator_cores
from engine.evaluation import pool as evaluation_pool
from engine.inference import prepare
from engine.problem import load_problem
from engine.store import Session, Verdict, create_run

# A loaded machine is no failure. The same few examples each time, so that a change that passes
# still does when it lands; ``make test-all`` looks for new ones.
hypothesis_settings.register_profile("same", deadline=None, derandomize=True, max_examples=30)
hypothesis_settings.register_profile("new", deadline=None, max_examples=100)
hypothesis_settings.load_profile("same")

# Before a test imports torch, which reads what this sets once: OpenMP threads that spin between two
# kernels make a step of the model's ten times slower where two processes share two cores.
prepare(threads=None, kv_cache_gb=1)

# A shell has what it starts in the background ignore interrupts, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

OWN = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
"""The number of this process among those that run tests."""


def own_cores(workers: int) -> list[int]:
    """Return the cores of evaluators: other ones than a process of tests beside this one takes."""
    return evaluator_cores(workers + OWN)[OWN:]


# Else one core has the evaluators of all processes of tests, and the other ones wait.
pytest.MonkeyPatch().setattr(evaluation_pool, "evaluator_cores", own_cores)

MODEL = "tests/inference/"
"""Where the tests share one loaded model."""
BESIDE = ("tests/cluster/test_node_cache.py", "tests/cluster/test_prefilled.py")
"""Others with an LMCache server: what its end leaves in shared memory is not to be another's."""


class ByFile(LoadScopeScheduling):
    """Gives each file to one process, and all files with a model to share to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return MODEL if file.startswith((MODEL, *BESIDE)) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """See `ByFile`."""
    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, the model and whole runs, so that no process is left alone."""
    items.sort(key=lambda item: (not item.nodeid.startswith(MODEL), item.nodeid.count("/")))


_BEGAN = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where machines differ by a factor of five, a limit of time is no limit of tests."""
    parser.addoption(
        "--most-minutes",
        type=float,
        default=float("inf"),
        help="skip what would begin later, and say so",
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """See ``--most-minutes``."""
    most = item.config.getoption("--most-minutes")
    if time.monotonic() - _BEGAN > 60 * most:
        pytest.skip(f"NOT RUN: the first {most:g} minutes are over (--most-minutes)")


@pytest.fixture(autouse=True)
def same_cores() -> Iterator[None]:
    """A test that leaves fewer cores makes all that come after it slow, and some of them fail."""
    before = os.sched_getaffinity(0), os.sched_getscheduler(0), os.nice(0)
    yield
    after = os.sched_getaffinity(0), os.sched_getscheduler(0), os.nice(0)
    os.sched_setaffinity(0, before[0])
    assert after == before


@pytest.fixture(scope="session")
def one_server() -> Iterator[Server]:
    """A server that runs; the tests of a process share it."""
    programs = installed()
    if programs is None:
        pytest.skip("the server of PostgreSQL is not installed (Debian: postgresql)")
    with running(programs) as server:
        yield server


@pytest.fixture
def server(one_server: Server) -> Iterator[Server]:
    """A server that runs, without a run."""
    yield one_server
    one_server.drop_all()


@pytest.fixture
def recorded_run(tmp_path: Path) -> Path:
    """A run of ``signal`` with a budget of no candidates, as it stands after its beginning."""
    settings = config.resolve(["problem=signal", "budget.candidates=0"])
    problem = load_problem(Path(settings.problem))
    evaluation = Evaluation(score=0.5, failure=None, metrics={"score": 0.5})
    folder = tmp_path / "runs" / "recorded"
    create_run(
        folder,
        write_config=lambda path: config.save(settings, path),
        events=[
            Session(number=0, engine="0", fingerprint=problem.fingerprint),
            Verdict(candidate=INITIAL, evaluation=evaluation, program=problem.initial_program),
        ],
    )
    return folder

"""What several test modules share: how tests are shared out, and a run's folder."""

from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

from engine import config
from engine.core import INITIAL, Evaluation
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


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give each file to one process, and the files that share a model to the same one."""
    folder = item.path.parent.name
    group = folder if folder == "inference" else f"{folder}/{item.path.name}"
    item.add_marker(pytest.mark.xdist_group(group))


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

"""What several test modules share: a run's folder that costs no model to make."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

from engine import config
from engine.core import INITIAL, Evaluation
from engine.problem import load_problem
from engine.store import Session, Verdict, create_run

# A loaded machine is no failure. The same few examples each time, so that a change that passes
# still does when it lands; ``make test-all`` looks for new ones.
hypothesis_settings.register_profile("same", deadline=None, derandomize=True, max_examples=30)
hypothesis_settings.register_profile("new", deadline=None, max_examples=100)
hypothesis_settings.load_profile("same")


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

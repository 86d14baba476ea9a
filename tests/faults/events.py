"""What a run recorded, without what may differ from one time to the next: seconds and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.core import Call, Child, Verdict
from engine.store import read_log

PLAIN = (
    *("problem=signal", "model=mutation", "fill=none", "islands.count=1", "search.k=4"),
    *("evaluation.workers=1", "budget.seconds=null", "pipeline.speculate=false"),
)
"""Arguments of a run whose events depend on its seed alone."""

Plain = Mapping[tuple[str, str], Any]


def plain_events(folder: Path) -> Plain:
    """Return the calls, children and verdicts of a run by kind and subject; each is there once."""
    found: dict[tuple[str, str], Any] = {}
    for recorded in read_log(folder):
        event = recorded.event
        if isinstance(event, Call):
            value: Any = (event.parent, event.rule, event.operator, event.k, event.seeds)
        elif isinstance(event, Child):
            text = None if event.program is None else event.program.text
            value = (event.parent, event.completion, text, event.refusal)
        elif isinstance(event, Verdict):
            evaluation = event.evaluation
            value = (evaluation.score, evaluation.failure, evaluation.metrics, event.cell)
        else:
            continue
        key = (event.KIND, event.subject)
        assert key not in found
        found[key] = value
    return found


def assert_same_run(some: Plain, other: Plain) -> None:
    """Assert that two runs recorded the same, whatever disturbed one of them."""
    assert some.keys() == other.keys()
    assert {key: some[key] for key in some if some[key] != other[key]} == {}

"""The text of a verdict in the table that processes share; no server is asked."""

from __future__ import annotations

import math

import pytest

from engine.core import Evaluation
from engine.store.verdicts import evaluation_of, text_of

METRICS = {"score": 0.1, "high": math.inf, "low": -math.inf, "third": 1 / 3}


def test_metrics_that_are_not_finite_come_back() -> None:
    evaluation = Evaluation(score=0.1, failure=None, metrics=METRICS, seconds=1.25, peak_bytes=7)
    assert evaluation_of(text_of(evaluation)) == evaluation


def test_a_metric_that_is_no_number_comes_back() -> None:
    evaluation = Evaluation(score=0.1, failure=None, metrics={"odd": math.nan})
    found = evaluation_of(text_of(evaluation))
    assert found is not None and math.isnan(found.metrics["odd"])


@pytest.mark.parametrize(
    "body",
    [
        *("", "{", "[]", "{}", "null", '{"candidate": ""}'),
        pytest.param("[" * 100_000, id="deep"),
        # As versions up to November 2026 wrote it.
        '{"score":0.5,"failure":null,"message":"","metrics":{"odd":null},"artifacts":{},'
        '"seconds":1.25,"peak_bytes":0}',
    ],
)
def test_a_text_that_cannot_be_read_is_none(body: str) -> None:
    assert evaluation_of(body) is None

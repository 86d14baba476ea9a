"""Evaluators for fills, which a file's tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from filling import drain, open_evaluators

from engine.fill import IdleEvaluators


@pytest.fixture(scope="module")
def opened() -> Iterator[IdleEvaluators]:
    with open_evaluators() as evaluators:
        yield evaluators


@pytest.fixture
def evaluators(opened: IdleEvaluators) -> IdleEvaluators:
    drain(opened)
    return opened

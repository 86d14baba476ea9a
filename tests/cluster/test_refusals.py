"""An island that no worker can go on with is offered again, and in the end no more."""

from __future__ import annotations

import pytest

from engine.cluster.refusals import MOST, Refusals
from engine.core import UserError


def test_an_island_that_is_refused_again_is_offered_after_twice_as_long() -> None:
    refusals = Refusals()
    assert [refusals.add(2, "it is elsewhere", candidates=7) for _ in range(4)] == [1, 2, 4, 8]
    assert refusals.add(0, "it is elsewhere", candidates=7) == 1


def test_an_island_that_got_on_in_between_begins_anew() -> None:
    refusals = Refusals()
    for candidates in range(3 * MOST):
        assert refusals.add(2, "the server is away", candidates=candidates) == 1
        assert refusals.add(2, "the server is away", candidates=candidates) == 2


def test_an_island_that_gets_nowhere_ends_the_run_with_the_reason() -> None:
    refusals = Refusals()
    pauses = [refusals.add(2, "its log is damaged", candidates=0) for _ in range(MOST - 1)]
    assert sum(pauses) > 300  # a server may be away for minutes
    with pytest.raises(UserError, match=r"island 2 got nowhere 10 times .*: its log is damaged"):
        refusals.add(2, "its log is damaged", candidates=0)

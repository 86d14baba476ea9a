"""A step that hangs is noticed, and one that only seems to is not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from engine.inference import watchdog
from engine.inference.watchdog import Watchdog


class Clock:
    """A clock that shows what it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(watchdog, "time", SimpleNamespace(monotonic=lambda: self.now))

    def look(self, dog: Watchdog, *, after: float, times: int = 1) -> list[bool]:
        found = []
        for _ in range(times):
            self.now += after
            found.append(dog.hangs())
        return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_a_step_hangs_once_it_has_lasted_longer_than_it_may(clock: Clock) -> None:
    dog = Watchdog(2.0)
    with dog.step():
        # The first look only finds out that there is a step.
        assert clock.look(dog, after=0.5, times=6) == [False] * 5 + [True]
    assert clock.look(dog, after=0.5) == [False]  # it came to its end after all


def test_short_steps_one_after_the_other_do_not_add_up(clock: Clock) -> None:
    dog = Watchdog(2.0)
    for _ in range(20):
        with dog.step():
            assert clock.look(dog, after=0.9, times=2) == [False, False]


def test_time_without_a_step_does_not_count(clock: Clock) -> None:
    dog = Watchdog(2.0)
    assert clock.look(dog, after=0.9, times=20) == [False] * 20
    with dog.step():
        assert clock.look(dog, after=0.9, times=3) == [False] * 3


def test_a_process_that_was_suspended_in_a_step_has_not_waited(clock: Clock) -> None:
    dog = Watchdog(2.0)
    with dog.step():
        assert clock.look(dog, after=0.5) == [False]
        assert clock.look(dog, after=86_400.0) == [False]
        assert clock.look(dog, after=0.5, times=3) == [False, False, True]

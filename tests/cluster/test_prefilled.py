"""A decoder whose prompts are computed elsewhere: calls begin once, and begin whatever happens."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from engine import config
from engine.cluster.islands import check_cluster
from engine.cluster.kv import prefilled
from engine.cluster.kv.prefilled import PrefilledDecoder
from engine.core import Generation, UserError
from engine.inference import Sampling

CHILD = Sampling(temperature=1.0, seed=0, stop=(), max_tokens=4)


class Decoder:
    """Decodes nothing; keeps which calls have begun and were aborted."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.aborted: list[int] = []
        self.in_flight = 0

    def submit(self, call: int, *, sampling: Sequence[Sampling], **_: Any) -> None:
        self.begun.append(call)
        self.in_flight += len(sampling)

    def abort(self, call: int) -> None:
        self.aborted.append(call)

    def completed(self) -> list[tuple[int, Generation]]:
        return []

    def adopt(self, version: int, folder: Path) -> None:
        raise NotImplementedError

    def adopted(self) -> list[tuple[int, float]]:
        return []


class Prefiller:
    """Answers when the test does."""

    def __init__(self) -> None:
        self.asked: list[Future[None]] = []

    def prefill(self, token_ids: Sequence[int]) -> Future[None]:
        self.asked.append(Future())
        return self.asked[-1]


class Setup:
    """A decoder with a prefiller, and how often it rang."""

    def __init__(self) -> None:
        self.decoder, self.prefiller, self.rings = Decoder(), Prefiller(), 0
        self.tested = PrefilledDecoder(self.decoder, notify=self._ring)
        self.tested.use(self.prefiller)

    def _ring(self) -> None:
        self.rings += 1

    def submit(self, call: int, *, adapter: int = 0) -> None:
        self.tested.submit(
            call,
            iteration=0,
            token_ids=[1, 2, 3],
            sampling=[CHILD, CHILD],
            is_over=lambda _: False,
            adapter=adapter,
        )


@pytest.fixture
def setup() -> Setup:
    return Setup()


def test_a_call_begins_when_its_prompt_is_there(setup: Setup) -> None:
    setup.submit(7)
    setup.submit(8)
    setup.tested.completed()
    assert setup.decoder.begun == [] and setup.tested.in_flight == 4
    setup.prefiller.asked[1].set_result(None)
    assert setup.rings == 1
    setup.tested.completed()
    assert setup.decoder.begun == [8] and setup.tested.in_flight == 4
    setup.prefiller.asked[0].set_result(None)
    setup.tested.completed()
    setup.tested.completed()
    assert setup.decoder.begun == [8, 7]


def test_without_a_prefiller_calls_begin_at_once(setup: Setup) -> None:
    setup.tested.use(None)
    setup.submit(1)
    assert setup.decoder.begun == [1] and setup.prefiller.asked == []


def test_a_prompt_under_an_adapter_is_computed_here(setup: Setup) -> None:
    setup.submit(1, adapter=3)
    assert setup.decoder.begun == [1] and setup.prefiller.asked == []


def test_a_prefiller_that_fails_is_said_once_and_costs_no_call(
    setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    for call in range(3):
        setup.submit(call)
    for asked in setup.prefiller.asked:
        asked.set_exception(RuntimeError("it died\nhere is its trace"))
    setup.tested.completed()
    setup.submit(3)
    assert setup.decoder.begun == [0, 1, 2, 3] and len(setup.prefiller.asked) == 3
    (line,) = caplog.messages
    assert line.endswith("it died")


def test_a_prefiller_that_does_not_answer_is_waited_for_so_long(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    setup.submit(1)
    monkeypatch.setattr(prefilled, "_PATIENCE", -1.0)
    setup.tested.completed()
    assert setup.decoder.begun == [1] and len(caplog.messages) == 1
    setup.prefiller.asked[0].set_result(None)  # late
    setup.tested.completed()
    assert setup.decoder.begun == [1]


def test_another_prefiller_is_used_after_one_that_failed(setup: Setup) -> None:
    setup.submit(1)
    setup.prefiller.asked[0].set_exception(RuntimeError("it died"))
    setup.tested.completed()
    other = Prefiller()
    setup.tested.use(other)
    setup.submit(2)
    assert setup.decoder.begun == [1] and len(other.asked) == 1


def test_a_prefiller_that_falls_behind_gets_no_more_prompts(setup: Setup) -> None:
    for call in range(10):
        setup.submit(call)
    assert len(setup.prefiller.asked) == 4 and setup.decoder.begun == [4, 5, 6, 7, 8, 9]


def test_a_call_that_is_aborted_while_it_waits_ends_like_any_other(setup: Setup) -> None:
    setup.submit(1)
    setup.tested.abort(1)
    assert setup.decoder.begun == setup.decoder.aborted == [1]
    setup.prefiller.asked[0].set_result(None)
    setup.tested.completed()
    assert setup.decoder.begun == [1]


def test_prefillers_without_a_way_to_hand_prompts_over_are_refused() -> None:
    settings = config.resolve(["model=smollm2", "cluster=ray", "cluster.prefillers=2"])
    with pytest.raises(UserError, match=r"^cluster\.prefillers is 2; .* cache=lmcache"):
        check_cluster(settings)

"""The decoder: the real engine in its thread, and the thread's own rules with a table's answers."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ahead import AHEAD
from table_fan import TableFan

from engine.core import Generation, UserError
from engine.inference import Decoder, LanguageModel, ModelLost, Sampling, llm
from engine.inference.watchdog import Watchdog
from engine.timeline import MODEL, TIMELINE, Activity, Timeline, read_events

STORY = "Once upon a time, in a village by the sea, there lived an old fisherman who"
LIST = "A shopping list:\n- milk\n- bread\n-"
SECONDS = 240.0
Finished = list[tuple[int, Generation]]


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    with Timeline(tmp_path / TIMELINE) as timeline:
        yield timeline


class Bell:
    """Rings when the decoder has something, and waits for it."""

    def __init__(self) -> None:
        self.rung = threading.Event()

    def collect(self, decoder: Decoder, number: int) -> Finished:
        """Return ``number`` children, in the order in which they were done."""
        finished: Finished = []
        deadline = time.monotonic() + SECONDS
        while len(finished) < number:
            assert self.rung.wait(max(0.0, deadline - time.monotonic())), finished
            self.rung.clear()
            finished += decoder.completed()
        return finished


def never(text: str) -> bool:
    return False


def sampling(seed: int = 0, *, max_tokens: int = 8, banned: tuple[int, ...] = ()) -> Sampling:
    return Sampling(temperature=0.8, seed=seed, stop=(), max_tokens=max_tokens, banned=banned)


# The real engine.


def test_calls_share_a_batch_and_each_child_comes_back_under_its_call(
    model: LanguageModel, timeline: Timeline, endless: tuple[int, ...]
) -> None:
    """Their texts are not those of each call alone: a batch's arithmetic is its own."""
    bell, steps, submitted = Bell(), Counter[str](), threading.Event()
    lengths = {7: [12, 3, 9], 8: [5], 9: [4, 4, 11, 2]}
    step = model.step

    def counted() -> None:
        assert submitted.wait(SECONDS)
        steps["all"] += 1
        step()

    prompts = {7: model.encode(STORY), 8: model.encode(LIST), 9: model.encode(STORY)}
    stand_in: Any = SimpleNamespace(fanout=model.fanout, step=counted)
    with Decoder(model=stand_in, timeline=timeline, notify=bell.rung.set) as decoder:
        for call, each in lengths.items():
            decoder.submit(
                call,
                iteration=call,
                token_ids=prompts[call],
                sampling=[
                    sampling(seed, max_tokens=length, banned=endless)
                    for seed, length in enumerate(each)
                ],
                is_over=never,
            )
        assert decoder.in_flight == 8
        submitted.set()
        finished = bell.collect(decoder, 8)
        assert (decoder.in_flight, decoder.completed()) == (0, [])
    found = {(call, child.index): child for call, child in finished}
    assert {key: child.generated_tokens for key, child in found.items()} == {
        (call, index): length for call, each in lengths.items() for index, length in enumerate(each)
    }
    for (call, _), child in found.items():
        assert (child.finish_reason, child.prompt_tokens) == ("length", len(prompts[call]))
        assert child.llm_seconds > 0
    assert steps["all"] <= max(map(max, lengths.values())) + 2  # the calls came within two steps


def test_an_abort_from_another_thread_ends_one_call_and_no_other(
    model: LanguageModel, timeline: Timeline, endless: tuple[int, ...]
) -> None:
    bell = Bell()
    with Decoder(model=model, timeline=timeline, notify=bell.rung.set) as decoder:
        for call, most in ((1, 900), (2, 6)):
            decoder.submit(
                call,
                iteration=call,
                token_ids=model.encode(STORY),
                sampling=[sampling(seed, max_tokens=most, banned=endless) for seed in range(3)],
                is_over=never,
            )
        # Call 1 is in the engine for as long as this takes.
        assert [(call, child.generated_tokens) for call, child in bell.collect(decoder, 3)] == [
            (2, 6)
        ] * 3
        aborting = threading.Thread(target=decoder.abort, args=(1,))
        aborting.start()
        aborted = bell.collect(decoder, 3)
        aborting.join()
        decoder.abort(1)  # once more, and one that never was: nothing
        decoder.abort(99)
        assert decoder.in_flight == 0
    assert {(call, child.finish_reason) for call, child in aborted} == {(1, "abort")}
    for _, child in aborted:
        assert 6 <= child.generated_tokens < 900
        assert child.text and child.prompt_tokens == len(model.encode(STORY))


def test_a_child_that_is_over_is_ended_and_costs_no_more_tokens(
    model: LanguageModel, timeline: Timeline, endless: tuple[int, ...]
) -> None:
    bell = Bell()
    asked: list[str] = []

    def at_the_second_line(text: str) -> bool:
        asked.append(text)
        return text.count("\n") >= 2

    def decoded(is_over: Callable[[str], bool]) -> Finished:
        decoder.submit(
            3,
            iteration=0,
            token_ids=model.encode(LIST),
            sampling=[sampling(seed, max_tokens=60, banned=endless) for seed in range(4)],
            is_over=is_over,
        )
        return bell.collect(decoder, 4)

    with Decoder(model=model, timeline=timeline, notify=bell.rung.set) as decoder:
        whole = decoded(never)
        assert {child.generated_tokens for _, child in whole} == {60}
        cut = decoded(at_the_second_line)
    ended = [child for _, child in cut if child.finish_reason == "abort"]
    assert len(ended) >= 2  # a list has lines
    for child in ended:
        assert child.text.count("\n") >= 2
        assert child.generated_tokens < 60
    assert all(child.text.count("\n") < 2 for _, child in cut if child not in ended)
    # It is asked at each new line of each child, not at each token.
    assert len(asked) <= sum(child.text.count("\n") for _, child in cut)
    assert all(text.count("\n") for text in asked)


def test_closing_in_mid_flight_leaves_the_engine_usable(
    model: LanguageModel, timeline: Timeline, endless: tuple[int, ...]
) -> None:
    bell = Bell()
    with Decoder(model=model, timeline=timeline, notify=bell.rung.set) as decoder:
        for call, most in ((1, 900), (2, 3)):
            decoder.submit(
                call,
                iteration=call,
                token_ids=model.encode(STORY),
                sampling=[sampling(seed, max_tokens=most, banned=endless) for seed in range(2)],
                is_over=never,
            )
        bell.collect(decoder, 2)
        decoder.submit(  # and one that may not have begun
            3, iteration=3, token_ids=model.encode(LIST), sampling=[sampling()], is_over=never
        )
    decoder.close()  # again: nothing
    assert not [thread for thread in threading.enumerate() if thread.name == "decoder"]
    steps = 0
    fan = model.fanout(
        token_ids=model.encode(LIST), sampling=[sampling(max_tokens=5, banned=endless)]
    )
    while fan.indices:
        model.step()
        steps += 1
    assert steps == 5 + AHEAD
    model.forget()  # no request holds any of the cache


def test_the_shares_of_all_children_add_up_to_the_steps_they_were_in(
    model: LanguageModel,
    timeline: Timeline,
    endless: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock here shows how long each step took: 1 s, 2 s, 3 s, and so on."""
    readings: list[float] = []

    def perf_counter() -> float:
        steps, ends = divmod(len(readings), 2)
        readings.append(sum(range(steps + 1)) + (steps + 1 if ends else 0.0))
        return readings[-1]

    bell = Bell()
    monkeypatch.setattr(llm, "time", SimpleNamespace(perf_counter=perf_counter))
    with Decoder(model=model, timeline=timeline, notify=bell.rung.set) as decoder:
        for call, lengths in ((1, [5, 2, 3]), (2, [7, 4]), (3, [900])):
            decoder.submit(
                call,
                iteration=call,
                token_ids=model.encode(STORY),
                sampling=[
                    sampling(seed, max_tokens=length, banned=endless)
                    for seed, length in enumerate(lengths)
                ],
                is_over=never,
            )
        finished = bell.collect(decoder, 5)
        decoder.abort(3)
        finished += bell.collect(decoder, 1)
    steps = len(readings) // 2
    assert steps >= 7
    shares = math.fsum(child.llm_seconds for _, child in finished)
    assert shares == pytest.approx(steps * (steps + 1) / 2, rel=1e-12)


# The thread's own rules.


class TableModel:
    """Writes one line of each child a step; a step may be told to wait or to fail."""

    def __init__(self, *, error: BaseException | None = None) -> None:
        self.fans: list[TableFan] = []
        self.adapters: list[int] = []
        self.versions: list[int] = []
        self.steps = 0
        self._in_step = threading.Event()
        self.go = threading.Event()
        self.go.set()
        self._error = error

    def adopt(self, version: int, folder: Path) -> None:
        if not folder.exists():
            raise ValueError(f"no adapter in {folder}")
        self.versions.append(version)

    def fanout(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int = 0
    ) -> Any:
        if not token_ids:
            raise ValueError("0 tokens are no prompt")
        fan = TableFan(
            prompt_tokens=len(token_ids),
            answers=["line\n" * each.max_tokens for each in sampling],
            encode=lambda text: [7] * text.count("\n"),
        )
        self.fans.append(fan)
        self.adapters.append(adapter)
        return fan

    def await_step(self) -> None:
        """Wait until the first step has begun."""
        assert self._in_step.wait(SECONDS)

    def step(self) -> None:
        self._in_step.set()
        assert self.go.wait(SECONDS)
        self.steps += 1
        if self._error is not None:
            raise self._error
        for fan in self.fans:
            for index in fan.indices:
                fan.write(index, lines=1)


def lines(*numbers: int) -> list[Sampling]:
    return [sampling(max_tokens=number) for number in numbers]


@pytest.mark.parametrize("error", [RuntimeError("the engine died"), KeyboardInterrupt()])
def test_what_ends_the_thread_is_raised_where_children_are_awaited(
    timeline: Timeline, error: BaseException
) -> None:
    bell, table = Bell(), TableModel(error=error)
    with Decoder(model=table, timeline=timeline, notify=bell.rung.set) as decoder:
        decoder.submit(1, iteration=0, token_ids=[1], sampling=lines(3), is_over=never)
        assert bell.rung.wait(SECONDS)
        for _ in range(2):
            with pytest.raises(type(error)) as raised:
                decoder.completed()
            assert raised.value is error
        decoder.submit(2, iteration=0, token_ids=[1], sampling=lines(3), is_over=never)  # to nobody
    assert table.steps == 1
    assert not table.fans[0].indices


def test_a_prompt_that_the_engine_refuses_is_such_an_error(timeline: Timeline) -> None:
    bell = Bell()
    with Decoder(model=TableModel(), timeline=timeline, notify=bell.rung.set) as decoder:
        decoder.submit(1, iteration=0, token_ids=[], sampling=lines(1), is_over=never)
        assert bell.rung.wait(SECONDS)
        with pytest.raises(ValueError, match="0 tokens are no prompt"):
            decoder.completed()


def test_a_check_that_fails_is_such_an_error(timeline: Timeline) -> None:
    bell = Bell()

    def broken(text: str) -> bool:
        raise ZeroDivisionError

    with Decoder(model=TableModel(), timeline=timeline, notify=bell.rung.set) as decoder:
        decoder.submit(1, iteration=0, token_ids=[1], sampling=lines(3), is_over=broken)
        assert bell.rung.wait(SECONDS)
        with pytest.raises(ZeroDivisionError):
            decoder.completed()


def test_nothing_is_stepped_where_nothing_is_to_be_decoded(timeline: Timeline) -> None:
    bell, table = Bell(), TableModel()
    with Decoder(model=table, timeline=timeline, notify=bell.rung.set) as decoder:
        decoder.submit(1, iteration=0, token_ids=[1], sampling=lines(2), is_over=never)
        bell.collect(decoder, 1)
        decoder.abort(1)
        decoder.submit(2, iteration=0, token_ids=[1], sampling=lines(1), is_over=never)
        bell.collect(decoder, 1)
    assert table.steps == 3


def test_submit_and_abort_do_not_wait_for_a_step(timeline: Timeline) -> None:
    bell, table = Bell(), TableModel()
    table.go.clear()
    with Decoder(model=table, timeline=timeline, notify=bell.rung.set) as decoder:
        decoder.submit(1, iteration=0, token_ids=[1], sampling=lines(3, 3), is_over=never)
        decoder.submit(2, iteration=0, token_ids=[1], sampling=lines(1), is_over=never)
        decoder.submit(3, iteration=0, token_ids=[1], sampling=lines(9), is_over=never)
        decoder.abort(3)  # before it has begun, or before its first line
        assert (decoder.in_flight, decoder.completed()) == (4, [])
        table.go.set()
        finished = bell.collect(decoder, 4)
    assert sorted((call, child.index, child.generated_tokens) for call, child in finished) == [
        (1, 0, 3),
        (1, 1, 3),
        (2, 0, 1),
        (3, 0, 0),
    ]


def test_a_closed_decoder_has_ended_its_thread_and_its_calls(timeline: Timeline) -> None:
    bell, table = Bell(), TableModel()
    decoder = Decoder(model=table, timeline=timeline, notify=bell.rung.set)
    decoder.submit(1, iteration=0, token_ids=[1], sampling=lines(1, 10**5), is_over=never)
    bell.collect(decoder, 1)
    decoder.close()
    decoder.close()
    assert not table.fans[0].indices
    assert not [thread for thread in threading.enumerate() if thread.name == "decoder"]


class HangingModel(TableModel):
    """Is in a step that hangs, to a watchdog whose clock a test sets."""

    def __init__(self, watchdog: Watchdog) -> None:
        super().__init__()
        self.go.clear()
        self._watchdog = watchdog

    def step(self) -> None:
        with self._watchdog.step():
            super().step()

    def load(self) -> None:
        if self._watchdog.hangs():
            raise ModelLost("it hangs")


def test_a_step_that_hangs_is_noticed_in_time_by_who_waits_for_its_end(
    timeline: Timeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock here shows for how long the decoder's thread was waited for."""
    waited: list[float] = []

    class Waited(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            waited.append(timeout or 0.0)

    clock = SimpleNamespace(monotonic=lambda: sum(waited))
    monkeypatch.setattr("engine.inference.watchdog.time", clock)
    monkeypatch.setattr("engine.inference.decoder.threading", SimpleNamespace(Thread=Waited))
    table = HangingModel(Watchdog(10.0))
    decoder = Decoder(model=table, timeline=timeline)
    decoder.submit(1, iteration=0, token_ids=[1], sampling=lines(1), is_over=never)
    table.await_step()
    with pytest.raises(ModelLost):
        decoder.close()
    assert 10 < sum(waited) <= 13
    table.go.set()
    for thread in threading.enumerate():
        if isinstance(thread, Waited):
            threading.Thread.join(thread, SECONDS)


def test_each_step_is_on_the_timeline_for_the_first_of_its_iterations(tmp_path: Path) -> None:
    bell, table = Bell(), TableModel()
    table.go.clear()
    with (
        Timeline(tmp_path / TIMELINE) as timeline,
        Decoder(model=table, timeline=timeline, notify=bell.rung.set) as decoder,
    ):
        decoder.submit(5, iteration=40, token_ids=[1], sampling=lines(6), is_over=never)
        decoder.submit(6, iteration=39, token_ids=[1], sampling=lines(2), is_over=never)
        table.go.set()
        bell.collect(decoder, 2)
    events = read_events(tmp_path / TIMELINE)
    spans = [each for each in events if each.ph == "X" and each.tid == MODEL]
    assert {each.name for each in spans} == {Activity.STEP}
    assert len(spans) == table.steps
    numbers = [each.args["iteration"] for each in spans]
    assert set(numbers) == {39, 40} and numbers.count(39) == 2  # as long as its child had lines


def test_a_version_is_loaded_before_the_calls_that_ask_for_it(
    timeline: Timeline, tmp_path: Path
) -> None:
    bell, table = Bell(), TableModel()
    with Decoder(model=table, timeline=timeline, notify=bell.rung.set) as decoder:
        decoder.submit(1, iteration=0, token_ids=[1], sampling=lines(3), is_over=never)
        decoder.adopt(1, tmp_path)
        decoder.adopt(2, tmp_path)
        decoder.submit(2, iteration=1, token_ids=[1], sampling=lines(3), is_over=never, adapter=2)
        bell.collect(decoder, 2)
        loaded = decoder.adopted()
        assert decoder.adopted() == []
    assert [version for version, _ in loaded] == table.versions == [1, 2]
    assert all(milliseconds >= 0 for _, milliseconds in loaded)
    assert table.adapters == [0, 2]


def test_a_version_that_cannot_be_loaded_is_said_where_children_are_awaited(
    timeline: Timeline, tmp_path: Path
) -> None:
    bell = Bell()
    with Decoder(model=TableModel(), timeline=timeline, notify=bell.rung.set) as decoder:
        decoder.adopt(1, tmp_path / "nowhere")
        assert bell.rung.wait(SECONDS)
        with pytest.raises(UserError, match=r"no adapter in .*; restore it from a copy"):
            decoder.completed()

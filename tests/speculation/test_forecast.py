"""Predictions: what they show, whom they name, and what is learned of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import config
from engine.core import INITIAL, Direction, Evaluation, Failure, Refusal
from engine.pipeline import RunState
from engine.search.search import Search
from engine.speculation.calls import last_parent
from engine.speculation.forecast import Forecast
from engine.store import Call, Child, Event, Recorded, RunHistory, Verdict
from engine.syntax import read

ISLANDS = 2


def new_state(*, p_elite: float = 0.3, p_uniform: float = 0.3) -> RunState:
    """Return the state of a run that knows nothing."""
    settings = config.resolve(
        [
            *(f"islands.count={ISLANDS}", "islands.migrate_every=0", "seed=5"),
            *(f"search.parent.p_elite={p_elite}", f"search.parent.p_uniform={p_uniform}"),
            *("search.operators.infill=0", "search.operators.rewrite=2", "search.operators.diff=1"),
            *("prompts.layout=stable", "prompts.history_tokens=1000"),
        ]
    )
    return RunState(
        history=RunHistory(direction=Direction.MAXIMISE),
        search=Search(
            settings=settings.search,
            width=settings.width,
            islands=settings.islands,
            prompts=settings.prompts,
            direction=Direction.MAXIMISE,
            seed=settings.seed,
            size=len,
        ),
        workers=1,
    )


def begun(*, p_elite: float = 0.3, p_uniform: float = 0.3) -> tuple[RunState, Forecast]:
    """Return the state of a run with an initial program of the score 0.5, and its forecast."""
    state = new_state(p_elite=p_elite, p_uniform=p_uniform)
    first = Evaluation(score=0.5, failure=None)
    fold(state, Verdict(candidate=INITIAL, evaluation=first, program="def f(x):\n    return x\n"))
    return state, forecast_of(state)


def forecast_of(state: RunState) -> Forecast:
    return Forecast(
        search=state.search, last_parent=lambda island: last_parent(state.history, island)
    )


def fold(state: RunState, *events: Event) -> None:
    for event in events:
        state.fold(Recorded(session=0, elapsed=0.0, event=event))


def ask(state: RunState, iteration: int, k: int, *, island: int = 0, parent: str = INITIAL) -> None:
    """Record a call and its children, without a verdict."""
    call = Call(
        iteration=iteration,
        island=island,
        parent=parent,
        rule="elite",
        operator="rewrite",
        k=k,
        known=state.history.events,
        prompt="",
        prompt_tokens=9,
        temperatures=(),
        seeds=(),
    )
    fold(state, call, *(child(iteration, index, parent=parent) for index in range(k)))


def child(
    iteration: int, index: int, *, parent: str = INITIAL, refusal: Refusal | None = None
) -> Child:
    return Child(
        id=f"{iteration}.{index}",
        iteration=iteration,
        index=index,
        parent=parent,
        operator="rewrite",
        completion="",
        completion_ids=(1,),
        finish_reason="stop",
        program=read(f"def f(x):\n    return x * {iteration} + {index}\n"),
        refusal=refusal,
        prompt_tokens=9,
        cached_prompt_tokens=4,
        llm_seconds=0.5,
    )


def tell(state: RunState, iteration: int, *scores: float | None) -> None:
    """Record the verdicts on a call's children."""
    for index, score in enumerate(scores):
        failure = Failure.ERROR if score is None else None
        evaluation = Evaluation(score=score, failure=failure, message="no" if failure else "")
        fold(state, Verdict(candidate=f"{iteration}.{index}", evaluation=evaluation))


def iterate(state: RunState, iteration: int, scores: Sequence[float], *, island: int = 0) -> None:
    ask(state, iteration, len(scores), island=island)
    tell(state, iteration, *scores)


def test_a_prediction_is_what_is_asked_where_the_verdicts_change_nothing() -> None:
    for number in range(2, 40):
        state, forecast = begun()
        iterate(state, 0, [0.6, 0.7, 0.55], island=1)
        ask(state, 1, 1, island=1)
        predicted = forecast.predict(number, island=1)
        assert [each.id for each in predicted.pending] == ["1.0"]
        assert {each.id for each in predicted.history} == {INITIAL, "0.1"}
        tell(state, 1, None)
        real = forecast.verify(predicted)
        assert real == state.search.ask(number, island=1)
        assert (real.parent, real.operator, real.seed) == (
            predicted.parent, predicted.operator, predicted.seed
        )  # fmt: skip


def test_a_prediction_misses_only_to_a_program_that_was_out() -> None:
    hits = 0
    for number in range(2, 302):
        state, forecast = begun(p_elite=0.0, p_uniform=1.0)
        iterate(state, 0, [0.1 * index for index in range(8)])
        ask(state, 1, 1)
        predicted = forecast.predict(number, island=0)
        tell(state, 1, 0.95)
        real = forecast.verify(predicted).parent.id
        assert real in (predicted.parent.id, "1.0")
        hits += real == predicted.parent.id
    assert 0.8 < hits / 300 < 0.97  # 9 of 10


def test_an_expert_that_was_right_is_believed() -> None:
    """Of a uniform policy, where the draw is wrong only if what was out is drawn: 1 in n of n.

    That makes 1/2 + ... + 1/60 = 3.7 of 59.
    """
    state, forecast = begun(p_elite=0.0, p_uniform=1.0)
    hits = 0
    for iteration in range(59):
        predicted = forecast.predict(iteration + 1, island=0)
        iterate(state, iteration, [0.5 + iteration / 100])
        hits += forecast.verify(predicted).parent == predicted.parent
    assert hits > 45
    assert forecast.predict(60, island=0).parent == state.search.ask(60, island=0).parent


def test_another_parent_than_the_drawn_one_is_named_once_its_expert_was_right_more_often() -> None:
    """The policy draws the best. While verdicts are out, the parent of the last call is another."""
    state, forecast = begun(p_elite=1.0, p_uniform=0.0)
    ask(state, 0, 1)
    tell(state, 0, 0.7)
    for iteration in (1, 2):
        ask(state, iteration, 1, parent="0.0")
        predicted = forecast.predict(iteration + 1, island=0)
        assert predicted.parent.id == "0.0"
        tell(state, iteration, 0.1)
        assert forecast.verify(predicted).parent.id == "0.0"
    # Each of the three was right each time; now the draw and the best are wrong, again is not.
    ask(state, 3, 2)
    fold(state, Verdict(candidate="3.0", evaluation=Evaluation(score=0.9, failure=None)))
    predicted = forecast.predict(4, island=0)
    assert predicted.parent.id == "3.0"
    ask(state, 5, 1, parent="3.0")
    assert forecast.predict(6, island=0).parent.id == "3.0"


def test_islands_learn_by_themselves() -> None:
    state, forecast = begun(p_elite=0.0, p_uniform=1.0)
    iterate(state, 0, [0.7, 0.6, 0.65])
    other = forecast_of(state)
    for number in range(1, 20):
        forecast.verify(forecast.predict(number, island=0))
    asked = [(number, forecast.predict(number, island=1)) for number in range(20, 40)]
    assert asked == [(number, other.predict(number, island=1)) for number in range(20, 40)]


def test_a_prediction_changes_nothing_that_is_asked() -> None:
    state, forecast = begun()
    iterate(state, 0, [0.7, 0.6])
    before = [state.search.ask(number, island=0) for number in range(1, 9)]
    for number in range(1, 9):
        forecast.verify(forecast.predict(number, island=0, begun=before[:number]))
    assert [state.search.ask(number, island=0) for number in range(1, 9)] == before


def test_nothing_can_be_predicted_before_a_valid_program_is_known() -> None:
    with pytest.raises(ValueError, match="nothing to start from"):
        forecast_of(new_state()).predict(0, island=0)


@given(st.lists(st.integers(0, 16), min_size=1, max_size=6))
def test_a_greedy_prediction_misses_only_a_better_program(scores: list[int]) -> None:
    state, forecast = begun(p_elite=1.0, p_uniform=0.0)
    ask(state, 0, len(scores))
    predicted = forecast.predict(1, island=0)
    assert predicted.parent.id == INITIAL
    tell(state, 0, *(score / 16 for score in scores))
    assert (forecast.verify(predicted).parent.id == INITIAL) == (max(scores) <= 8)


def test_the_last_parent_is_that_of_the_last_call_with_an_admitted_child() -> None:
    state, _ = begun()
    assert last_parent(state.history, 0) is None
    iterate(state, 0, [0.6, 0.7])
    ask(state, 1, 1, parent="0.1")
    ask(state, 2, 1, island=1)
    assert last_parent(state.history, 0) == "0.1"
    call = replace(state.history.calls[1], iteration=3, parent="0.0")
    refused = child(3, 0, parent="0.0", refusal=Refusal.DUPLICATE)
    fold(state, call, refused)
    assert last_parent(state.history, 0) == "0.1"
    assert last_parent(state.history, 1) == INITIAL

"""Guesses: what the search asks for before the verdicts are in, against what it asks for then."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from states import state_of

from engine import config
from engine.core import INITIAL, Evaluation, Failure, Refusal
from engine.pipeline import RunState
from engine.store import Call, Child, Event, Recorded, Verdict
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
    return state_of(settings, seed=settings.seed)


def begun(*, p_elite: float = 0.3, p_uniform: float = 0.3) -> RunState:
    """Return the state of a run with an initial program of the score 0.5."""
    state = new_state(p_elite=p_elite, p_uniform=p_uniform)
    first = Evaluation(score=0.5, failure=None)
    fold(state, Verdict(candidate=INITIAL, evaluation=first, program="def f(x):\n    return x\n"))
    return state


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
        state = begun()
        iterate(state, 0, [0.6, 0.7, 0.55], island=1)
        ask(state, 1, 1, island=1)
        predicted = state.search.ask(number, island=1)
        assert [each.id for each in predicted.pending] == ["1.0"]
        assert {each.id for each in predicted.history} == {INITIAL, "0.1"}
        tell(state, 1, None)
        real = state.search.ask(number, island=1)
        assert (real.parent, real.operator, real.seed) == (
            predicted.parent, predicted.operator, predicted.seed
        )  # fmt: skip


def test_a_prediction_misses_only_to_a_program_that_was_out() -> None:
    hits = 0
    for number in range(2, 302):
        state = begun(p_elite=0.0, p_uniform=1.0)
        iterate(state, 0, [0.1 * index for index in range(8)])
        ask(state, 1, 1)
        predicted = state.search.ask(number, island=0)
        tell(state, 1, 0.95)
        real = state.search.ask(number, island=0).parent.id
        assert real in (predicted.parent.id, "1.0")
        hits += real == predicted.parent.id
    assert 0.8 < hits / 300 < 0.97  # 9 of 10


@given(st.lists(st.integers(0, 16), min_size=1, max_size=6))
def test_a_greedy_prediction_misses_only_a_better_program(scores: list[int]) -> None:
    state = begun(p_elite=1.0, p_uniform=0.0)
    ask(state, 0, len(scores))
    predicted = state.search.ask(1, island=0)
    assert predicted.parent.id == INITIAL
    tell(state, 0, *(score / 16 for score in scores))
    assert (state.search.ask(1, island=0).parent.id == INITIAL) == (max(scores) <= 8)

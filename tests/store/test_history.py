"""What a run's events add up to, told one by one or read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core import INITIAL, Direction, Evaluation, Failure, Miss, Refusal, SwitchedOff
from engine.store import (
    Call,
    Child,
    Event,
    EventLog,
    GivenUp,
    Recorded,
    RunHistory,
    Session,
    Verdict,
    create_run,
)
from engine.syntax import read

FIRST: list[Event] = [
    Session(number=0, engine="0", fingerprint="f"),
    Verdict(
        candidate=INITIAL,
        evaluation=Evaluation(score=0.5, failure=None, seconds=9.0),
        program="x = 0\n",
    ),
]


def call(iteration: int, k: int = 3, *, guessed: bool = False) -> Call:
    return Call(
        iteration=iteration,
        island=0,
        parent=INITIAL,
        rule="elite",
        operator="infill",
        k=k,
        known=0,
        guessed=guessed,
        prompt="",
        prompt_tokens=100,
        temperatures=(),
        seeds=(),
    )


def child(name: str, refusal: Refusal | None = None) -> Child:
    iteration, index = map(int, name.split("."))
    return Child(
        id=name,
        iteration=iteration,
        index=index,
        parent=INITIAL,
        operator="infill",
        completion="",
        completion_ids=tuple(range(7)),
        finish_reason="stop",
        program=read(f"x = {name}\n") if refusal is not Refusal.UNPARSED else None,
        refusal=refusal,
        prompt_tokens=100,
        cached_prompt_tokens=80,
        llm_seconds=0.5,
        missed={Miss.NEW: 15, Miss.ALIGNMENT: 5},
    )


def verdict(name: str, score: float | None) -> Verdict:
    failure = None if score is not None else Failure.ERROR
    return Verdict(
        candidate=name, evaluation=Evaluation(score=score, failure=failure, seconds=0.25)
    )


def history_of(events: list[Event], direction: Direction = Direction.MAXIMISE) -> RunHistory:
    history = RunHistory(direction=direction)
    for number, event in enumerate(events):
        history.fold(Recorded(session=0, elapsed=float(number), event=event))
    return history


def test_every_event_counts_where_it_belongs() -> None:
    history = history_of(
        [
            *FIRST,
            call(0),
            child("0.2"),
            child("0.0", Refusal.UNPARSED),
            verdict("0.2", 0.75),
            child("0.1", Refusal.DUPLICATE),
            call(1),
            child("1.1"),
            child("1.0"),
            verdict("1.0", None),
        ]
    )
    assert list(history.calls) == [0, 1]
    assert list(history.children) == ["0.2", "0.0", "0.1", "1.1", "1.0"]
    assert (history.admitted, history.evaluated, history.valid) == (3, 2, 1)
    assert history.refusals == {Refusal.UNPARSED: 1, Refusal.DUPLICATE: 1}
    assert (history.prompt_tokens, history.cached_prompt_tokens) == (500, 400)
    assert (history.generated_tokens, history.llm_seconds) == (35, 2.5)
    assert history.hit_rate == 0.8
    assert history.missed == {Miss.NEW: 75, Miss.ALIGNMENT: 25}
    assert history.evaluation_seconds == 0.5  # without the initial program's
    assert history.wall_seconds == 10.0
    assert [*history.pending] == ["1.1"]
    assert history.missing(history.calls[0]) == []
    assert history.missing(history.calls[1]) == [2]
    assert history.missing(call(2)) == [0, 1, 2]
    assert history.best is not None and history.best.candidate == "0.2"


def test_screened_candidates_and_stages_switched_off_are_counted() -> None:
    off = SwitchedOff(stage="quick", iteration=2, correlation=0.125, error=0.25, pairs=64)
    screened = Verdict(
        candidate="0.1", evaluation=Evaluation(score=None, failure=Failure.SCREENED, seconds=0.5)
    )
    history = history_of(
        [
            *FIRST,
            *(child(name) for name in ("0.0", "0.1", "0.2")),
            verdict("0.0", 0.75),
            screened,
            verdict("0.2", None),
            off,
        ]
    )
    assert (history.evaluated, history.screened, history.judged, history.valid) == (3, 1, 2, 1)
    assert history.switched_off == {"quick": off}
    assert history.evaluation_seconds == 1.0
    assert not history.pending


def lost(iteration: int, attempt: int) -> GivenUp:
    return GivenUp(
        iteration=iteration,
        attempt=attempt,
        island=0,
        parent=INITIAL,
        generated_tokens=50,
        prompt_tokens=100,
        cached_prompt_tokens=60,
        llm_seconds=0.25,
    )


def test_guesses_are_counted_apart_from_children() -> None:
    history = history_of(
        [*FIRST, call(0), call(3, guessed=True), lost(4, 0), lost(2, 0), lost(4, 1)]
    )
    assert history.guessed == 1
    assert history.given_up == [lost(4, 0), lost(2, 0), lost(4, 1)]
    assert [history.attempts[iteration] for iteration in range(5)] == [0, 0, 1, 0, 2]
    assert history.next_iteration == 4  # that of a call that was not made is free
    assert history_of(FIRST).next_iteration == 0
    assert history.events == 7
    assert (history.generated_tokens, history.prompt_tokens, history.llm_seconds) == (0, 0, 0)


def test_wall_seconds_are_those_of_all_sessions() -> None:
    history = history_of(FIRST)
    history.fold(Recorded(session=0, elapsed=5.25, event=call(0)))
    history.fold(Recorded(session=1, elapsed=0.5, event=replace(FIRST[0], number=1)))
    history.fold(Recorded(session=1, elapsed=2.5, event=child("0.0")))
    assert history.wall_seconds == 5.25 + 2.5
    assert [session.number for session in history.sessions] == [0, 1]


@pytest.mark.parametrize(
    ("direction", "best"), [(Direction.MAXIMISE, "0.1"), (Direction.MINIMISE, "0.0")]
)
def test_the_best_is_the_first_of_the_best_scores(direction: Direction, best: str) -> None:
    scores = {"0.0": 0.25, "0.1": 0.75, "0.2": None, "1.0": 0.75, "1.1": 0.25}
    events = [*FIRST, *map(child, scores), *(verdict(*each) for each in scores.items())]
    history = history_of(events, direction)
    assert history.best is not None and history.best.candidate == best
    assert history_of([*FIRST], direction).best == FIRST[1]


def test_what_given_up_guesses_cost_is_added_up() -> None:
    history = history_of([*FIRST, lost(1, 0), call(1), child("1.0"), lost(2, 0)])
    guess = lost(1, 0)
    assert history.wasted_tokens == 2 * guess.generated_tokens
    assert history.wasted_prompt_tokens == 2 * guess.prompt_tokens
    assert history.wasted_cached_prompt_tokens == 2 * guess.cached_prompt_tokens
    assert history.generated_tokens == 7


def test_the_wait_for_a_better_score_is_counted_in_candidates() -> None:
    scores = [0.5, None, 0.75, 0.6, 0.75, 0.1, 0.8, None]  # from 0.5; equal is no better
    names = [f"0.{index}" for index in range(len(scores))]
    events = [*FIRST, *map(child, names)]
    waits = []
    for name, score in zip(names, scores, strict=True):
        events.append(verdict(name, score))
        history = history_of(events)
        waits.append((history.since_best, history.longest_wait))
    assert waits == [(1, 1), (2, 2), (0, 2), (1, 2), (2, 2), (3, 3), (0, 3), (1, 3)]


def test_programs_are_found_by_their_ids() -> None:
    history = history_of([*FIRST, child("0.0"), child("0.1", Refusal.UNPARSED)])
    assert history.program_of(INITIAL) == "x = 0\n"
    assert history.program_of("0.0") == "x = 0.0\n"
    with pytest.raises(KeyError, match=r"0\.1 has no program"):
        history.program_of("0.1")
    with pytest.raises(KeyError):
        history.program_of("9.9")


names = [f"{iteration}.{index}" for iteration in range(3) for index in range(3)]


@given(
    st.permutations(names),
    st.dictionaries(st.sampled_from(names), st.sampled_from(Refusal)),
    st.dictionaries(
        st.sampled_from(names), st.none() | st.floats(allow_nan=False, allow_infinity=False)
    ),
)
def test_the_counts_agree_with_each_other(
    order: list[str], refusals: dict[str, Refusal], scores: dict[str, float | None]
) -> None:
    evaluated = {name: score for name, score in scores.items() if name not in refusals}
    history = history_of(
        [
            *FIRST,
            *(child(name, refusals.get(name)) for name in order),
            *(verdict(name, score) for name, score in evaluated.items()),
        ]
    )
    assert history.admitted == len(names) - len(refusals)
    assert history.admitted == history.evaluated + len(history.pending)
    assert [*history.pending] == [
        name for name in order if name not in refusals and name not in evaluated
    ]
    valid = [score for score in evaluated.values() if score is not None]
    assert history.valid == len(valid)
    assert history.best is not None and history.best.score == max([0.5, *valid])
    assert all(history.missing(call(iteration)) == [] for iteration in range(3))


def test_a_run_read_back_is_the_run_as_it_was_told(tmp_path: Path) -> None:
    create_run(tmp_path / "run", write_config=lambda path: path.touch(), events=FIRST)
    told = RunHistory(direction=Direction.MAXIMISE)
    with EventLog(tmp_path / "run", session=0) as log:
        for recorded in log.events():
            told.fold(recorded)
        off = SwitchedOff(stage="quick", iteration=1, correlation=1 / 3, error=0.1, pairs=64)
        events = (call(0), child("0.1"), child("0.0", Refusal.LONG), verdict("0.1", 1 / 3), off)
        for event in (*events, lost(1, 0), lost(1, 1), call(1, guessed=True)):
            told.fold(log.append(event))
        log.commit()
    read = RunHistory(direction=Direction.MAXIMISE)
    with EventLog(tmp_path / "run") as log:
        for recorded in log.events():
            read.fold(recorded)
    assert read == told
    assert list(read.children) == list(told.children)

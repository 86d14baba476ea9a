"""What an archive changes of a state that is told a log."""

from __future__ import annotations

from collections.abc import Sequence

from states import state_of
from test_state import BEGINNING, call, child, fold

from engine import config
from engine.core import INITIAL, Evaluation, Feature, Refusal
from engine.pipeline import RunState
from engine.store import Event, Verdict

ARGUMENTS = ("islands.count=2", "islands.migrate_every=0", "search.k=2")
CELLS = (Feature(name="lag", low=0, high=40, bins=40),)


def new_state(
    *arguments: str, features: Sequence[Feature] | None = None, count: int = 2
) -> RunState:
    settings = config.resolve([*ARGUMENTS, f"islands.count={count}", *arguments])
    state = state_of(settings, workers=2, features=features)
    first = Evaluation(score=0.5, failure=None, metrics={"lag": 0.0})
    fold(
        state,
        BEGINNING[0],
        Verdict(candidate=INITIAL, evaluation=first, program="x = 0\n", cell=(0,)),
    )
    return state


def iteration(number: int, *, island: int, **verdicts: tuple[float, float]) -> list[Event]:
    """Return an iteration of two children; a verdict is a score and the lag it comes with."""
    events: list[Event] = [call(number, island=island)]
    for index in range(2):
        given = verdicts.get(f"child{index}")
        name = f"{number}.{index}"
        if given is None:
            events.append(child(name, refusal=Refusal.UNPARSED))
            continue
        score, lag = given
        evaluation = Evaluation(score=score, failure=None, metrics={"lag": lag})
        events += [
            child(name),
            Verdict(candidate=name, evaluation=evaluation, cell=(CELLS[0].bin(lag),)),
        ]
    return events


# What improved, as the width policy sees it: TurboEvolve's K leaves 5 after six iterations.


def width_after(state: RunState, *children: tuple[float, float]) -> int:
    """Return K after iterations whose child, a score and a lag, never beats the best program."""
    for number, child0 in enumerate(children):
        fold(state, *iteration(number, island=0, child0=child0))
    return state.search.ask(99, island=0).k


def test_with_an_archive_an_iteration_improves_that_replaces_an_elite() -> None:
    turboevolve = "width.policy=turboevolve"
    better = [(number / 100, 1.0) for number in range(6)]
    as_good, new_cells = [(0.1, 1.0)] * 6, [(0.1, float(lag)) for lag in range(1, 7)]
    assert width_after(new_state(turboevolve, features=CELLS), *better) == 3
    assert width_after(new_state(turboevolve, features=CELLS), *as_good) == 7
    assert width_after(new_state(turboevolve, features=CELLS), *new_cells) == 7  # all were empty
    assert width_after(new_state(turboevolve), *better) == 7

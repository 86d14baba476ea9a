"""An archive, and the choice between islands, as the log leads to them."""

from __future__ import annotations

from collections.abc import Sequence

from test_state import BEGINNING, call, child, fold

from engine import config
from engine.core import INITIAL, Direction, Evaluation, Feature, Refusal
from engine.pipeline import RunState
from engine.search import Search
from engine.store import Event, RunHistory, Verdict

ARGUMENTS = ("islands.count=2", "islands.migrate_every=0", "search.k=2")
CELLS = (Feature(name="lag", low=0, high=40, bins=40),)


def new_state(
    *arguments: str, features: Sequence[Feature] | None = None, count: int = 2
) -> RunState:
    settings = config.resolve([*ARGUMENTS, f"islands.count={count}", *arguments])
    state = RunState(
        history=RunHistory(direction=Direction.MAXIMISE),
        search=Search(
            settings=settings.search,
            width=settings.width,
            islands=settings.islands,
            prompts=settings.prompts,
            direction=Direction.MAXIMISE,
            seed=1,
            size=len,
            features=features,
        ),
        workers=2,
    )
    first = Evaluation(score=0.5, failure=None, metrics={"lag": 0.0})
    fold(state, BEGINNING[0], Verdict.of(INITIAL, first, program="x = 0\n", cell=(0,)))
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
        events += [child(name), Verdict.of(name, evaluation, cell=(CELLS[0].bin(lag),))]
    return events


# What improved, as the width policy sees it: TurboEvolve's K leaves 5 after six iterations.


def width_after(state: RunState, *, lags: Sequence[float]) -> int:
    """Return K after iterations whose child never beats the best program."""
    for number, lag in enumerate(lags):
        fold(state, *iteration(number, island=0, child0=(0.1, lag)))
    return state.search.ask(99, island=0).k


def test_with_an_archive_an_iteration_improves_that_takes_over_a_cell() -> None:
    turboevolve = "width.kind=turboevolve"
    new_cells, old_cells = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0] * 6
    assert width_after(new_state(turboevolve, features=CELLS), lags=new_cells) == 3
    assert width_after(new_state(turboevolve, features=CELLS), lags=old_cells) == 7
    assert width_after(new_state(turboevolve), lags=new_cells) == 7


# Whose turn it is.


def test_the_bandit_gives_the_room_to_the_island_that_improves() -> None:
    turns, ucb = new_state("islands.choice=turns"), new_state("islands.choice=ucb")
    for state in (turns, ucb):
        for number in range(4):
            best = {"child0": (0.6 + number, 0.0)} if number % 2 else {"child0": (0.1, 0.0)}
            fold(state, *iteration(number, island=number % 2, child1=(0.0, 0.0), **best))
    assert turns.next_of([0, 1]) == 0
    assert ucb.next_of([1, 0]) == ucb.next_of([0, 1]) == 1
    assert ucb.next_of([0]) == 0  # the other one's verdicts are not in
    assert ucb.next_of([]) is None


def test_a_state_that_is_told_the_log_again_gives_the_room_to_the_same_islands() -> None:
    first, again = (new_state("islands.choice=ucb", count=3) for _ in range(2))
    chosen, log = [], []
    for number in range(30):
        island = first.next_of([0, 1, 2])
        assert island is not None
        chosen.append(island)
        score = 2.0**number if island == 1 else 0.4
        refused = number % 5 == 0
        made = {} if refused else {"child0": (score, 0.0), "child1": (0.1, 0.0)}
        log.append(iteration(number, island=island, **made))
        fold(first, *log[-1])
    assert set(chosen) == {0, 1, 2}
    assert chosen != [number % 3 for number in range(30)]
    assert chosen.count(1) > max(chosen.count(0), chosen.count(2))
    for island, events in zip(chosen, log, strict=True):
        assert again.next_of([2, 1, 0]) == island
        fold(again, *events)


# Further islands.


def opened(*arguments: str) -> RunState:
    """Return a state whose second island begins with the scores 0.8, 0.5 and 0.1."""
    state = new_state("islands.most=2", "islands.spawn_below=1.0", *arguments, count=1)
    events = iteration(0, island=0, child0=(0.8, 0.0), child1=(0.1, 0.0))
    fold(state, *events[:-1])
    assert state.search.islands == 1
    fold(state, events[-1])  # the verdict that ends the iteration
    assert state.search.islands == 2
    return state


def test_a_further_island_is_next_as_it_never_called() -> None:
    state = opened("islands.choice=turns")
    assert state.next_of([0, 1]) == 1 and not state.is_open(1)
    fold(state, *iteration(1, island=1, child0=(0.2, 0.0)))
    assert state.next_of([0, 1]) == 0
    assert [each.id for each in state.search.programs(1)] == ["initial", "0.0", "0.1", "1.0"]


def test_on_a_further_island_a_child_improves_that_is_better_than_what_it_began_with() -> None:
    better, worse = (opened("width.kind=turboevolve") for _ in range(2))
    for number in range(1, 7):
        fold(better, *iteration(number, island=1, child0=(0.8 + number / 100, 0.0)))
        fold(worse, *iteration(number, island=1, child0=(0.5 + number / 100, 0.0)))
    assert better.search.ask(99, island=1).k == 3
    assert worse.search.ask(99, island=1).k == 7

"""What an island takes of the programs that a neighbour sent."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from births import born
from states import state_of

from engine import config
from engine.cluster.exchange import Exchange
from engine.core import (
    INITIAL,
    Child,
    Evaluation,
    Event,
    Fill,
    Program,
    Sent,
    Session,
    Verdict,
)
from engine.store import Recorded
from engine.syntax import read

NEIGHBOUR, THEIR_ID = 1, "7.0"
EPOCHS = 2  # what a neighbour sent at the end of one is taken at the end of the next


def program(text: str) -> Program:
    found = read(text)
    assert found is not None
    return found


SENT = program("x = 5\n")
BETTER = Evaluation(score=0.9, failure=None)
FILL = Fill(
    number=0, maker="mutation", parent=INITIAL, island=0, sample=0, program=SENT, joins=True
)


class Island:
    """An island at the end of an epoch, whose neighbour sent it one program at the last one's."""

    def __init__(self, *before: Event) -> None:
        """Let some events happen in its last iteration."""
        settings = config.resolve(["islands.count=1", "fill=default"])
        self.state = state_of(settings)
        for event in (
            Session(number=0, engine="0", fingerprint="f"),
            Verdict(
                candidate=INITIAL,
                evaluation=Evaluation(score=0.5, failure=None),
                program="x = 0\n",
            ),
            *_iteration(0),
            *before,
            *_iteration(1),
        ):
            self.record(event)
        self.exchange = Exchange(
            state=self.state,
            record=self.record,
            neighbours=[NEIGHBOUR],
            every=1,
            most=1,
            read=_read,
        )

    def record(self, event: Event) -> None:
        self.state.fold(Recorded(session=0, elapsed=0.0, event=event))


def _iteration(number: int) -> Sequence[Event]:
    name = f"{number}.0"
    child, call = born(id=name, program=program(f"x = 1 + {number}\n"), iteration=number, k=1)
    return call, child, Verdict(candidate=name, evaluation=Evaluation(score=0.6, failure=None))


def _read(number: int, kind: type[Event], subject: str) -> Event | None:
    """Read the neighbour's log."""
    assert number == NEIGHBOUR
    child, _ = born(id=THEIR_ID, program=SENT, iteration=7)
    there = {
        (Sent, str(EPOCHS - 1)): Sent(epoch=EPOCHS - 1, candidates=(THEIR_ID,)),
        (Child, THEIR_ID): child,
        (Verdict, THEIR_ID): Verdict(candidate=THEIR_ID, evaluation=BETTER),
    }
    return there.get((kind, subject))


@pytest.mark.parametrize("before", [(), (FILL,)], ids=["unknown", "waiting-fill"])
def test_a_program_that_nobody_judged_here_becomes_a_parent(before: tuple[Event, ...]) -> None:
    """A fill that is the same may wait for ever; the one that was sent has its score."""
    island = Island(*before)
    assert island.exchange.is_through()
    (arrived,) = island.state.history.migrants.values()
    assert (arrived.origin, arrived.candidate, arrived.program) == (NEIGHBOUR, THEIR_ID, SENT)
    assert island.state.search.best(0, most=1)[0].id == arrived.id
    assert island.state.search.known_as(SENT) == arrived.id  # so the fill is withdrawn


def test_a_program_that_was_judged_here_does_not_arrive() -> None:
    island = Island(FILL, Verdict(candidate=FILL.id, evaluation=BETTER))
    assert island.exchange.is_through()
    assert not island.state.history.migrants
    assert island.state.search.best(0, most=1)[0].id == FILL.id

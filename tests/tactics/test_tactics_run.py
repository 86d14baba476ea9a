"""Runs that ask what to try: the question is at the model beside the calls, and belongs to none."""

from __future__ import annotations

import time

from scripted import ScriptModel, beginning, go_on, history_of, usual

from engine import config
from engine.core import Event, Tactics
from engine.inference import Sampling

TOKENS = 400  # of the question's answer, which tells it from a program


class SlowToSay(ScriptModel):
    """Answers the question last, and takes its time."""

    def __init__(self) -> None:
        super().__init__(answer=_answer)

    def step(self) -> None:
        self._fans = [fan for fan in self._fans if fan.indices]
        if len(self._fans) == 1:
            time.sleep(0.05)
        super().step()


def _answer(sampling: Sampling) -> str:
    if sampling.max_tokens == TOKENS:
        return "".join(f"- multiply by {number}\n" for number in range(20))
    return usual(sampling)


def test_a_question_that_leaves_a_call_no_room_does_not_end_the_run() -> None:
    """All other children are back and judged, and the next call fits once it is answered."""
    settings = config.resolve(
        [
            *("fill=none", "islands.count=1", "search.k=4", "pipeline.children=4"),
            *("pipeline.adaptive=false", "budget.candidates=40", "budget.seconds=null"),
            *("search.operators.infill=0", "search.operators.rewrite=1"),
            *("prompts.history_tokens=200", "prompts.growth_tokens=100", "model.max_tokens=300"),
            *("tactics.when=periodic", "tactics.window=1", f"tactics.tokens={TOKENS}"),
        ]
    )
    events: list[Event] = beginning()
    go_on(settings, events, model=SlowToSay())
    assert any(isinstance(each, Tactics) for each in events)
    assert history_of(events).evaluated == 40

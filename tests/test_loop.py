"""The loop with a cascade and failed attempts in its prompts: cut short anywhere, it goes on alike.

That holds wherever the order of events is not left to chance: on one island that does not guess,
and on several where nothing overlaps. The model and the pool here answer from the seed and the
program alone, and chance decides when verdicts come in, so that two runs can be compared event by
event; ``test_resume.py`` has the real ones, ``test_schedules.py`` what holds where all overlaps.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import random
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from inline import Inline
from looping import evolve
from table_fan import TableFan

from engine import config
from engine.beginning import restore, told_cascade
from engine.core import (
    INITIAL,
    ChatFrame,
    Evaluation,
    Failure,
    Feature,
    Miss,
    Problem,
    Refusal,
    SwitchedOff,
)
from engine.inference import EngineLoad, Sampling
from engine.problem import load_problem
from engine.prompts.chat import Rewrite
from engine.settings import RunSettings
from engine.store import Call, Child, Event, Recorded, Session, Verdict
from engine.timeline import TIMELINE, Timeline

CANDIDATES = 400
WIDTHS = ("fixed", "turboevolve", "cost_aware")
LAYOUTS = ("classic", "stable", "transcript")  # `ancestors` has the tests of its method
MODES = {
    "island": ("islands.count=1", "pipeline.overlap=true", "pipeline.speculate=false"),
    "phases": ("islands.count=3", "islands.migrate_every=2", "pipeline.overlap=false"),
    "archive": (
        *("islands.count=3", "islands.migrate_every=2", "pipeline.overlap=false"),
        "search.archive=problem",
    ),
}


class Death(Exception):
    """The process dies here."""


class TableModel:
    """A language model whose answer follows from the sampling seed; it writes one at a time.

    It refuses a call that is not among the events that are on disk.
    """

    max_model_len = 4096
    block_size = 16

    def __init__(self, committed: Sequence[Event]) -> None:
        self._committed = committed
        self._fans: list[TableFan] = []

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        return [hash(word) for word in text.split()]

    def chat_frame(self, *, system: str) -> ChatFrame:
        return ChatFrame(opening=f"{system}\n", closing="\n", turn="\n")

    def adopt(self, version: int, folder: Path) -> None:
        raise ValueError("a stand-in takes no adapter")

    def fanout(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int = 0
    ) -> TableFan:
        seeds = {each.seed for each in sampling}
        assert any(seeds <= {*e.seeds} for e in self._committed[::-1] if isinstance(e, Call))
        fan = TableFan(
            prompt_tokens=len(token_ids),
            answers=[f"```python\ndef f(x):\n    return x * {each.seed}\n```" for each in sampling],
            encode=self.encode,
        )
        self._fans.append(fan)
        return fan

    def step(self) -> None:
        self._fans = [fan for fan in self._fans if fan.indices]
        self._fans[0].write(self._fans[0].indices[0], lines=4)

    def load(self) -> EngineLoad:
        return EngineLoad(waiting=0, kv_usage=0.0)


class StallingModel(TableModel):
    """Writes the first child and begins the second one, and then no more until it is ended."""

    def step(self) -> None:
        (fan,) = self._fans
        if 0 in fan.indices:
            fan.write(1, lines=2)
            fan.write(0, lines=4)


class TablePool:
    """A pool whose verdicts follow from program and stage; what does well at the last cheap one
    does badly at the others. They come back by chance.

    It refuses a child that is not among the events that are on disk.
    """

    def __init__(
        self,
        rng: random.Random,
        committed: Sequence[Event],
        *,
        misleading: int,
        ring: Callable[[], None],
    ) -> None:
        self._rng = rng
        self._committed = committed
        self._misleading = misleading
        self._ring = ring
        self._waiting: list[tuple[str, Evaluation]] = []

    def submit(self, *, candidate_id: str, program: str, stage: int, order: int) -> None:
        assert any(e.subject == candidate_id for e in self._committed[::-1] if isinstance(e, Child))
        digest = hashlib.sha256(f"{stage} {program}".encode()).digest()
        quality = int.from_bytes(hashlib.sha256(program.encode()).digest()[:4], "big") / 2**32
        score = 1 - quality if stage == self._misleading else quality
        if digest[4] < 50:
            verdict = Evaluation(
                score=None,
                failure=Failure.ERROR,
                message=f"line 2: failed at {stage}",
                artifacts={"stdout": f"{score}"},
                seconds=score,
            )
        else:
            verdict = Evaluation(score=score, failure=None, metrics={"score": score}, seconds=score)
        self._waiting.append((candidate_id, verdict))

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        if not self._waiting:
            return []
        self._ring()  # what is left, or not yet taken, is to be asked for soon
        if self._rng.random() < 0.5:
            return []
        return [self._waiting.pop(self._rng.randrange(len(self._waiting)))]


KINDS = [
    *(
        (layout, width, mode)
        for (layout, width), mode in itertools.product(
            zip(LAYOUTS, WIDTHS, strict=True), ("island", "phases")
        )
    ),
    ("stable", "turboevolve", "archive"),
]


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def settings(request: pytest.FixtureRequest) -> RunSettings:
    layout, width, mode = request.param
    return config.resolve(
        [
            *(f"prompts.layout={layout}", "prompts.history_tokens=200"),
            *(f"width.policy={width}", *MODES[mode]),
            *(["width.k_max=12"] if width == "cost_aware" else []),
            "prompts.growth_tokens=100",
            *("search.operators.infill=0", "search.operators.rewrite=1", "search.failures=2"),
            *(f"budget.candidates={CANDIDATES}", "budget.seconds=null", "search.k=8"),
        ]
    )


@pytest.fixture(scope="module")
def problem() -> Problem:
    whole = load_problem(Path(config.resolve([]).problem))
    quick = dataclasses.replace(whole.stages[0], name="quick")
    scores = Feature(name="score", low=0, high=1, bins=8)
    return dataclasses.replace(
        whole, entry_point="f", stages=(quick, *whole.stages), features=(scores,)
    )


def beginning() -> list[Event]:
    first = Evaluation(score=0.5, failure=None, metrics={"score": 0.5, "quick.score": 0.5})
    return [
        Session(number=0, engine="0", fingerprint="f"),
        Verdict(
            candidate=INITIAL, evaluation=first, program="def f(x):\n    return x\n", cell=(4,)
        ),
    ]


def go_on(
    settings: RunSettings,
    problem: Problem,
    events: list[Event],
    *,
    most: int,
    seed: int,
    model_of: type[TableModel] = TableModel,
) -> None:
    """Go on with the run recorded in ``events`` until it ends or has ``most`` of them."""
    committed = [*events]
    model, bell = model_of(committed), threading.Event()
    restored = restore(settings, problem, [_recorded(event) for event in events], model)

    def record(event: Event) -> None:
        if len(events) >= most:
            events[:] = committed
            raise Death
        events.append(event)
        restored.state.fold(_recorded(event))

    def commit() -> None:
        committed.extend(events[len(committed) :])

    operator = Rewrite(problem=problem, tokenizer=model, max_tokens=500, prompts=settings.prompts)
    misleading = len(problem.stages) - 2
    pool = TablePool(random.Random(seed), committed, misleading=misleading, ring=bell.set)
    parts: dict[str, Any] = {"model": model, "operators": {"rewrite": operator}}
    with tempfile.TemporaryDirectory() as folder, Timeline(Path(folder) / TIMELINE) as timeline:
        evolve(
            syntax=Inline(),
            settings=settings,
            restored=restored,
            record=record,
            commit=commit,
            evaluator=told_cascade(settings, problem, restored.state.history, pool),
            stopped=lambda: False,
            timeline=timeline,
            bell=bell,
            **parts,
        )


def _recorded(event: Event) -> Recorded:
    return Recorded(session=0, elapsed=0.0, event=event)


def sorted_out(events: list[Event]) -> dict[str, dict[str, Event]]:
    """Return the events by kind and subject: the order within an iteration is chance's.

    Why a prompt token was computed depends on what the session asked before, so on its deaths. The
    children that were still written when the budget was reached are left out: they are cut off
    anywhere.
    """
    kinds: dict[str, dict[str, Event]] = {}
    for event in events:
        if isinstance(event, Child):
            if event.finish_reason == "abort" or event.refusal is Refusal.BUDGET:
                continue
            event = dataclasses.replace(event, missed={})
        kinds.setdefault(event.KIND, {})[event.subject] = event
    return kinds


@pytest.fixture(scope="module")
def whole(settings: RunSettings, problem: Problem) -> list[Event]:
    """A run that was never cut short."""
    events = beginning()
    go_on(settings, problem, events, most=10**9, seed=0)
    return events


def test_a_run_screens_switches_a_bad_stage_off_and_shows_failures(whole: list[Event]) -> None:
    verdicts = [event for event in whole if isinstance(event, Verdict)]
    assert len(verdicts) == CANDIDATES + 1
    kinds = {verdict.evaluation.failure for verdict in verdicts}
    assert kinds == {None, Failure.SCREENED, Failure.ERROR}
    (off,) = (event for event in whole if isinstance(event, SwitchedOff))
    skipped = [
        v for v in verdicts if v.score is not None and "quick.score" not in v.evaluation.metrics
    ]
    assert {int(v.candidate.split(".")[0]) >= off.iteration for v in skipped} == {True}
    children = {event.id: event for event in whole if isinstance(event, Child)}
    calls = [event for event in whole if isinstance(event, Call)]
    # What stands before the last answer of a transcript was shown with an earlier parent.
    asked = [(call, call.prompt.rpartition("That program has the score ")[2]) for call in calls]
    shown = [(call, text) for call, text in asked if "# Failed attempts" in text]
    assert len(shown) > len(calls) / 4
    for call, text in shown:
        failed = [
            verdict
            for verdict in verdicts
            if verdict.score is None
            and children[verdict.candidate].parent == call.parent
            and children[verdict.candidate].iteration < call.iteration
        ]
        assert sum(verdict.evaluation.message in text for verdict in failed) >= 1


def test_every_computed_prompt_token_has_a_reason(
    settings: RunSettings, whole: list[Event]
) -> None:
    children = [event for event in whole if isinstance(event, Child)]
    for child in children:
        computed = child.prompt_tokens - child.cached_prompt_tokens
        assert sum(child.missed.values()) == computed
        # A child that the run's end cuts off before its first token computed nothing.
        assert computed > 0 or (child.finish_reason == "abort" and not child.completion)
    assert set(children[0].missed) == {Miss.COLD, Miss.ALIGNMENT}
    reasons = {reason for child in children[8:] for reason in child.missed}
    assert Miss.NEW in reasons
    if settings.width.policy != "cost_aware":  # whose K follows the clock, and may stay 1
        assert len(reasons) > 1


def test_the_prompts_are_those_of_the_layout(settings: RunSettings, whole: list[Event]) -> None:
    prompts = [event.prompt for event in whole if isinstance(event, Call)][10:]
    others = sum(prompt.count("# Program ") for prompt in prompts)
    answers = sum(prompt.count("That program has the score ") for prompt in prompts)
    moved = [prompt for prompt in prompts if "\n# Program " in prompt.partition("# Current")[2]]
    if settings.prompts.layout == "transcript":
        assert answers > len(prompts) / 2 and not others
    else:
        assert others > 5 * len(prompts) and not answers
        assert bool(moved) == (settings.prompts.layout == "classic")


def test_islands_take_turns_and_their_best_wander(
    settings: RunSettings, whole: list[Event]
) -> None:
    calls = [event for event in whole if isinstance(event, Call)]
    count = settings.islands.count
    turns = [number % count for number in range(len(calls))]
    assert [call.island for call in calls] == turns
    assert [call.iteration for call in calls] == [*range(len(calls))]
    home = {str(call.iteration): call.island for call in calls} | {INITIAL: None}
    came = [call for call in calls if home[call.parent.split(".")[0]] not in (None, call.island)]
    origins = {home[call.parent.split(".")[0]] for call in came}
    assert origins if settings.search.archive != "none" else len(origins) == count * (count > 1)
    for call in came:
        assert (home[call.parent.split(".")[0]] + 1) % count == call.island  # one step in the ring


def test_a_call_knows_all_verdicts_of_its_islands_iterations(whole: list[Event]) -> None:
    for position, call in enumerate(whole):
        if isinstance(call, Call):
            assert (call.known, call.guessed) == (position, False)
            known = {event.subject for event in whole[:position] if isinstance(event, Verdict)}
            before = (event for event in whole[:position] if isinstance(event, Child))
            assert {child.id for child in before if child.refusal is None} < known


@pytest.mark.parametrize("seed", range(3))
def test_a_run_cut_short_again_and_again_is_the_run_that_was_not(
    settings: RunSettings, problem: Problem, whole: list[Event], seed: int
) -> None:
    events, rng, deaths = beginning(), random.Random(seed), 0
    while True:
        try:
            most = len(events) + rng.randrange(1, 150)
            go_on(settings, problem, events, most=most, seed=rng.randrange(10**6))
            break
        except Death:
            deaths += 1
    assert deaths > 5
    assert sorted_out(events) == sorted_out(whole)


def test_a_stage_is_switched_off_though_the_run_dies_when_that_is_found(problem: Problem) -> None:
    """With two cheap stages the fall of the second is found when verdicts of the first are in."""
    settings = config.resolve(
        [
            *("search.operators.infill=0", "search.operators.rewrite=1", "search.k=8"),
            *("budget.candidates=800", "budget.seconds=null", *MODES["phases"]),
            *("evaluation.cascade.keep=0.5", "evaluation.cascade.audit=0.5"),
        ]
    )
    good = dataclasses.replace(problem.stages[0], name="good")
    problem = dataclasses.replace(problem, stages=(good, *problem.stages))
    whole = beginning()
    first = whole[1]
    assert isinstance(first, Verdict)
    whole[1] = dataclasses.replace(
        first,
        evaluation=dataclasses.replace(
            first.evaluation, metrics={**first.evaluation.metrics, "good.score": 0.5}
        ),
    )
    go_on(settings, problem, whole, most=10**9, seed=0)
    (end,) = (place for place, event in enumerate(whole) if isinstance(event, SwitchedOff))
    events = whole[:end]
    go_on(settings, problem, events, most=10**9, seed=1)
    assert sorted_out(events) == sorted_out(whole)


def test_children_that_the_end_of_the_budget_cuts_off_are_no_failures(problem: Problem) -> None:
    settings = config.resolve(
        [
            *("search.operators.infill=0", "search.operators.rewrite=1", "search.k=4"),
            *("islands.count=1", "budget.tokens=1", "budget.seconds=null"),
        ]
    )
    events = beginning()
    go_on(settings, problem, events, most=10**9, seed=0, model_of=StallingModel)
    children = {event.id: event for event in events if isinstance(event, Child)}
    assert children.pop("0.0").refusal is None
    assert [bool(child.completion) for child in children.values()] == [True, False, False]
    assert {child.program for child in children.values()} == {None}
    assert {child.refusal for child in children.values()} == {Refusal.BUDGET}

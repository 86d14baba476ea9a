"""Guesses several calls ahead: how far they go, what they show, and what becomes of them.

The loop, the search, the prompts and the decoder are the real ones; the model answers at once, and
verdicts are held back until so many calls were begun.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hand_trainer import HandAdopter, HandTrainer
from inline import Inline
from looping import evolve
from table_fan import TableFan

from engine import config
from engine.beginning import restore, told_cascade
from engine.core import INITIAL, ChatFrame, Evaluation, Failure, Problem
from engine.inference import EngineLoad, Sampling
from engine.learning import Group, Learner
from engine.learning.group import Member
from engine.learning.job import Done
from engine.problem import load_problem
from engine.prompts.chat import Rewrite
from engine.settings import RunSettings
from engine.steering import Steering
from engine.store import Call, Child, Event, GivenUp, Recorded, RunHistory, Session, Verdict
from engine.timeline import TIMELINE, Timeline

K = 2
HANGS = 120.0  # seconds
BEST = ("search.parent.p_elite=1", "search.parent.p_uniform=0")
SAID = {"explore": "Look for another approach than", "exploit": "Refine what makes"}
"""What prompts say of a rule."""


class Model:
    """Writes a program of its own for each child, in one step; counts the calls."""

    block_size = 16
    max_model_len = 1 << 20

    def __init__(self, *, is_held: Callable[[int], bool] = lambda number: False) -> None:
        self._fans: dict[int, TableFan] = {}
        self._is_held = is_held  # whether a call, by its number, is not answered yet
        self.calls = 0

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        return [*map(ord, text)]

    def chat_frame(self, *, system: str) -> ChatFrame:
        return ChatFrame(opening=f"{system}\n", closing="\n", turn="\n")

    def load(self) -> EngineLoad:
        return EngineLoad(waiting=0, kv_usage=0.0)

    def adopt(self, version: int, folder: Path) -> None:
        raise ValueError("a stand-in takes no adapter")

    def fanout(
        self, *, token_ids: Sequence[int], sampling: Sequence[Sampling], adapter: int = 0
    ) -> TableFan:
        fan = TableFan(
            prompt_tokens=len(token_ids),
            answers=[f"```python\ndef f(x):\n    return x * {each.seed}\n```" for each in sampling],
            encode=self.encode,
        )
        self._fans[self.calls] = fan
        self.calls += 1
        return fan

    def step(self) -> None:
        for number in [each for each in self._fans if not self._is_held(each)]:
            fan = self._fans.pop(number)
            for index in fan.indices:
                fan.write(index, lines=9)


class PatientPool:
    """Gives an iteration's verdicts once the model was asked for ``ahead`` calls after it.

    All candidates have the score 0.25, below that of the initial program, but those in ``scores``.
    """

    def __init__(
        self,
        model: Model,
        *,
        ahead: int,
        last: int,
        scores: Mapping[str, float | None],
        before: Callable[[], object],
        is_held: Callable[[int], bool],
    ) -> None:
        self._model = model
        self._ahead = ahead
        self._last = last  # the last iteration after which a call follows
        self._scores = scores
        self._before = before  # called before verdicts are given
        self._is_held = is_held  # whether an iteration's verdicts are not given yet
        self._waiting: dict[str, int] = {}

    def submit(self, *, candidate_id: str, program: str, stage: int, order: int) -> None:
        self._waiting[candidate_id] = order

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        ready = [
            candidate
            for candidate, iteration in self._waiting.items()
            if self._model.calls > min(iteration, self._last) + self._ahead
            and not self._is_held(iteration)
        ]
        if ready:
            self._before()
        for candidate in ready:
            del self._waiting[candidate]
        return [(each, verdict(self._scores.get(each, 0.25))) for each in ready]


def verdict(score: float | None) -> Evaluation:
    if score is None:
        return Evaluation(score=None, failure=Failure.ERROR, message="it failed")
    return Evaluation(score=score, failure=None, metrics={"score": score})


def resolved(
    *, ahead: int, calls: int, history_tokens: int, parent: Sequence[str] = BEST
) -> RunSettings:
    """Return settings with a way to choose parents; by default the best program is the parent."""
    return config.resolve(
        [
            *("pipeline.speculate=true", f"pipeline.ahead={ahead}", "pipeline.adaptive=false"),
            *(*parent, f"search.k={K}"),
            *("search.operators.infill=0", "search.operators.rewrite=1"),
            *(f"prompts.history_tokens={history_tokens}", "width.policy=fixed", "islands.count=1"),
            *(f"budget.candidates={K * calls}", "budget.seconds=null"),
        ]
    )


def live(
    settings: RunSettings,
    tmp_path: Path,
    *,
    last: int,
    scores: Mapping[str, float | None],
    ahead: int | None = None,
    stops_at: float = float("inf"),
    before: Callable[[], object] = lambda: None,
    look: Callable[[Sequence[Event]], object] = lambda events: None,
    steering: Steering | None = None,
    model: Model | None = None,
    is_held: Callable[[int], bool] = lambda iteration: False,
    learner_of: Callable[[RunHistory], Learner] | None = None,
) -> list[Event]:
    """Return what a run records.

    ``ahead`` is the pool's, as the settings' if None; ``stops_at``: so many calls end the run.
    ``before`` is called before verdicts are given, ``look`` in each turn of the loop. ``is_held``
    says which iterations' verdicts are held back.
    """
    whole = load_problem(Path(settings.problem))
    problem: Problem = dataclasses.replace(whole, entry_point="f")
    first = Verdict(candidate=INITIAL, evaluation=verdict(0.5), program="def f(x):\n    return x\n")
    events: list[Event] = [Session(number=0, engine="0", fingerprint="f"), first]
    model, bell = model or Model(), threading.Event()
    restored = restore(settings, problem, [_recorded(each) for each in events], model)
    deadline = time.monotonic() + HANGS
    learner = learner_of and learner_of(restored.state.history)

    def record(event: Event) -> None:
        events.append(event)
        restored.state.fold(_recorded(event))
        if learner is not None:
            learner.fold(event)

    def commit() -> None:
        for step in learner.completed() if learner is not None else ():
            record(step)

    def is_stopped() -> bool:
        look(events)
        assert time.monotonic() < deadline, "the model is not asked for as many calls as it should"
        return model.calls >= stops_at

    parts: dict[str, Any] = {"model": model}
    operator = Rewrite(problem=problem, tokenizer=model, max_tokens=500, prompts=settings.prompts)
    ahead = settings.pipeline.ahead if ahead is None else ahead
    pool = PatientPool(model, ahead=ahead, last=last, scores=scores, before=before, is_held=is_held)
    with Timeline(tmp_path / TIMELINE) as timeline:
        evolve(
            syntax=Inline(),
            settings=settings,
            restored=restored,
            record=record,
            commit=commit,
            operators={"rewrite": operator},
            evaluator=told_cascade(settings, problem, restored.state.history, pool),
            stopped=is_stopped,
            timeline=timeline,
            bell=bell,
            steering=steering,
            learner=learner,
            **parts,
        )
    return events


def _recorded(event: Event) -> Recorded:
    return Recorded(session=0, elapsed=0.0, event=event)


@pytest.mark.parametrize("ahead", [1, 2, 3])
def test_an_island_is_as_many_calls_ahead_as_the_settings_say(ahead: int, tmp_path: Path) -> None:
    """The pool waits for so many calls, so the run would hang with fewer."""
    settings = resolved(ahead=ahead, calls=6, history_tokens=0)
    events = live(settings, tmp_path, last=5 - ahead, scores={})
    calls = [event for event in events if isinstance(event, Call)]
    assert [call.iteration for call in calls] == [*range(len(calls))]
    assert [call.guessed for call in calls[:6]] == [False] + 5 * [True]
    assert {call.parent for call in calls} == {INITIAL}
    assert {call.ahead for call in calls} == {()}  # these prompts show no other programs
    verdicts = [event.candidate for event in events if isinstance(event, Verdict)]
    admitted = [each.id for each in events if isinstance(each, Child) and each.refusal is None]
    assert sorted(verdicts[1:]) == sorted(admitted)
    assert len(admitted) == 6 * K


def test_a_guess_shows_the_children_of_the_guess_before_it(tmp_path: Path) -> None:
    settings = resolved(ahead=2, calls=5, history_tokens=2000)
    events = live(settings, tmp_path, last=2, scores={})
    calls = {event.iteration: event for event in events if isinstance(event, Call)}
    children = {event.id: event for event in events if isinstance(event, Child)}
    assert (calls[1].ahead, calls[2].ahead) == ((), ("1.0", "1.1"))
    for each in ("0.0", "0.1", "1.0", "1.1"):
        assert f"# Program {each}, score pending\n" in calls[2].prompt
        assert children[each].program.text.strip() in calls[2].prompt
    # A search that is told the log asks for that prompt again, as one that goes on with it would.
    position = events.index(calls[2])
    assert calls[2].known < events.index(children["1.0"]) < position


def test_a_guess_may_be_behind_what_is_under_way(tmp_path: Path) -> None:
    plain = resolved(ahead=2, calls=5, history_tokens=2000)
    settings = dataclasses.replace(plain, prompts=dataclasses.replace(plain.prompts, pending=False))
    events = live(settings, tmp_path, last=2, scores={})
    calls = {event.iteration: event for event in events if isinstance(event, Call)}
    assert calls[2].guessed and calls[2].ahead == ()
    assert not any("pending" in call.prompt for call in calls.values())


@pytest.mark.parametrize("history_tokens", [0, 2000])
def test_a_verdict_that_changes_the_parent_ends_all_guesses_of_another(
    history_tokens: int, tmp_path: Path
) -> None:
    settings = resolved(ahead=2, calls=4, history_tokens=history_tokens)
    events = live(settings, tmp_path, last=1, scores={"0.1": 0.75})
    calls = {event.iteration: event for event in events if isinstance(event, Call)}
    assert [calls[i].parent for i in range(3)] == [INITIAL, "0.1", "0.1"]
    assert not calls[1].guessed  # its guess was of another parent, and its verdicts were all in
    wrong = [each for each in events if isinstance(each, GivenUp) and each.parent == INITIAL]
    assert {each.iteration for each in wrong} == {1, 2}
    assert all(each.generated_tokens > 0 for each in wrong)
    # What a wrong guess had is neither recorded nor evaluated.
    made = [each for each in events if isinstance(each, Child)]
    assert {each.parent for each in made if each.iteration > 0} == {"0.1"}


def test_a_stop_records_what_guesses_cost_and_waits_for_no_verdict(tmp_path: Path) -> None:
    settings = resolved(ahead=3, calls=9, history_tokens=0)
    # The pool gives no verdict before a sixth call, which never comes.
    events = live(settings, tmp_path, last=9, scores={}, ahead=5, stops_at=4)
    calls = [event for event in events if isinstance(event, Call)]
    assert [call.iteration for call in calls] == [0]
    assert {each.iteration for each in events if isinstance(each, Child)} == {0}
    assert [each for each in events if isinstance(each, Verdict)] == [events[1]]
    guesses = {each.iteration: each for each in events if isinstance(each, GivenUp)}
    assert guesses.keys() == {1, 2, 3}
    assert guesses[1].generated_tokens > 0  # it was decoded before the next one began


def test_no_guess_begins_whose_children_the_budget_would_not_admit(tmp_path: Path) -> None:
    settings = resolved(ahead=3, calls=3, history_tokens=0)
    events = live(settings, tmp_path, last=0, scores={}, ahead=2)
    calls = [event for event in events if isinstance(event, Call)]
    assert [call.guessed for call in calls] == [False, True, True]
    assert not [event for event in events if isinstance(event, GivenUp)]
    assert all(each.refusal is None for each in events if isinstance(each, Child))


def test_a_guess_whose_prompt_says_what_no_longer_holds_is_wrong(tmp_path: Path) -> None:
    """Once the first population is there, its parent is drawn by a rule that the prompt tells."""
    parent = ("search.parent.policy=codeevolve", f"search.parent.population={1 + K}")
    settings = resolved(ahead=1, calls=3, history_tokens=0, parent=parent)
    events = live(settings, tmp_path, last=1, scores={"0.0": None, "0.1": None})
    calls = {event.iteration: event for event in events if isinstance(event, Call)}
    assert calls[0].rule == "first" and calls[1].rule in SAID
    assert calls[0].parent == calls[1].parent == INITIAL  # there is no other
    assert not calls[1].guessed
    assert 1 in {each.iteration for each in events if isinstance(each, GivenUp)}
    for call in calls.values():
        said = {rule for rule, words in SAID.items() if words in call.prompt}
        assert said == {call.rule} & {*SAID}


def test_a_wrong_guess_leads_to_no_call_while_the_run_is_paused(tmp_path: Path) -> None:
    steering, turns = Steering(), 0

    def pause() -> None:
        steering.is_paused = turns == 0  # for the first verdicts, which prove the guesses wrong

    def look(events: Sequence[Event]) -> None:
        nonlocal turns
        if steering.is_paused:
            assert [event.iteration for event in events if isinstance(event, Call)] == [0]
            turns += 1
            steering.is_paused = turns < 4

    settings = resolved(ahead=2, calls=4, history_tokens=0)
    events = live(
        settings,
        tmp_path,
        last=1,
        scores={"0.1": 0.75},
        before=pause,
        look=look,
        steering=steering,
    )
    assert turns == 4
    calls = {event.iteration: event for event in events if isinstance(event, Call)}
    assert (calls[1].parent, calls[1].guessed) == ("0.1", False)
    wrong = {each.iteration for each in events if isinstance(each, GivenUp)}
    assert wrong >= {1, 2}  # the second one may not stay: its call would come before the first's
    admitted = [each for each in events if isinstance(each, Child) and each.refusal is None]
    assert len(admitted) == 4 * K


class QuickTrainer(HandTrainer):
    """A trainer whose steps stand at once, as far as the test lets it make any."""

    def __init__(self, *, most: Callable[[], int]) -> None:
        super().__init__()
        self._most = most

    def completed(self) -> Done | None:
        if self.is_busy and len(self.jobs) <= self._most():
            self.jobs[-1].folder.mkdir(parents=True)
            self.finish()
        return super().completed()


class QuickAdopter(HandAdopter):
    """A model that loads an adapter at once."""

    def adopt(self, version: int, folder: Path) -> None:
        super().adopt(version, folder)
        self.loaded.append((version, 1.0))


def learnable(call: Call, history: RunHistory) -> Group:
    member = Member(answers=(), reward=0.0)
    return Group(iteration=call.iteration, adapter=call.adapter, members=(member,))


def test_the_adapter_of_a_guess_outlives_all_that_is_learned_before_it_comes_true(
    tmp_path: Path,
) -> None:
    """Its call is on record before its last child is: a run that is killed there needs it again."""
    guessed, steps = 10, 9  # as many checkpoints are kept, and some more
    settings = resolved(ahead=1, calls=guessed + 1, history_tokens=0)
    is_recorded, is_there = False, None
    history: RunHistory | None = None
    model = Model(is_held=lambda number: number == guessed and not is_recorded)

    def most() -> int:
        """Let all steps but the first wait for the guess."""
        return 1 if model.calls <= guessed else steps

    def learner_of(of: RunHistory) -> Learner:
        nonlocal history
        history = of
        learner = Learner(
            settings=dataclasses.replace(
                config.resolve(["learning=mean_baseline"]).learning, groups=1, max_lag=100
            ),
            history=of,
            folder=tmp_path,
            make_group=learnable,
            trainer=QuickTrainer(most=most),  # type: ignore[arg-type]
            progress=lambda: 0.5,
        )
        learner.serve(QuickAdopter())
        return learner

    def look(events: Sequence[Event]) -> None:
        nonlocal is_recorded, is_there
        assert history is not None
        if guessed in history.calls and not is_recorded:
            assert history.missing(history.calls[guessed])
            version = history.calls[guessed].adapter
            is_there = (tmp_path / "adapters" / f"{version:06}").is_dir()
            is_recorded = True

    events = live(
        settings,
        tmp_path,
        last=guessed - 1,
        scores={},
        look=look,
        model=model,
        is_held=lambda number: number == guessed - 1 and history.adapter < steps,
        learner_of=learner_of,
    )
    call = next(each for each in events if isinstance(each, Call) and each.iteration == guessed)
    assert call.guessed and call.adapter == 1
    assert is_there

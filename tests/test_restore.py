"""A run that is restored from its log is where the run that recorded it was."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from engine import config
from engine.beginning import Restored, restore, told_cascade
from engine.core import INITIAL, ChatFrame, Evaluation, Failure, Problem, Proposal, SwitchedOff
from engine.pipeline import RunState
from engine.problem import load_problem
from engine.search.mixes import MIXES
from engine.settings import Layout, RunSettings
from engine.store import Call, Child, Event, GivenUp, Hint, Recorded, Session, Verdict, replay
from engine.syntax import read


class NoPool:
    """A pool that only says what it was handed."""

    def __init__(self) -> None:
        self.stages: list[int] = []

    def submit(self, *, candidate_id: str, program: str, stage: int, order: int) -> None:
        self.stages.append(stage)

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        return []


class Letters:
    """A tokenizer to which each character is a token."""

    max_model_len = 4096
    block_size = 16

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        return [*map(ord, text)]

    def chat_frame(self, *, system: str) -> ChatFrame:
        return ChatFrame(opening=system, closing="", turn="")


@pytest.fixture(scope="module", params=get_args(Layout))
def settings(request: pytest.FixtureRequest) -> RunSettings:
    return config.resolve(
        [
            *("search.failures=3", "search.parent.p_elite=1", "search.parent.p_uniform=0"),
            *(f"prompts.layout={request.param}", "prompts.history_tokens=100"),
            *("prompts.growth_tokens=50", "search.k=4"),
            *("islands.count=2", "islands.migrate_every=2", "islands.migrants=1"),
        ]
    )


@pytest.fixture(scope="module")
def problem(settings: RunSettings) -> Problem:
    whole = load_problem(Path(settings.problem))
    return replace(whole, stages=(replace(whole.stages[0], name="quick"), *whole.stages))


def call(proposal: Proposal, *, known: int, guessed: bool = False) -> Call:
    return Call(
        iteration=proposal.iteration,
        island=proposal.island,
        parent=proposal.parent.id,
        rule=proposal.rule,
        operator=proposal.operator,
        k=proposal.k,
        known=known,
        guessed=guessed,
        partner=proposal.partner_id,
        repairs=proposal.repairs_id,
        prompt="",
        prompt_tokens=1,
        temperatures=(),
        seeds=(),
    )


def child(iteration: int, index: int, *, parent: str = INITIAL) -> Child:
    return Child(
        id=f"{iteration}.{index}",
        iteration=iteration,
        index=index,
        parent=parent,
        operator="rewrite",
        completion=f"answer {iteration}.{index}",
        completion_ids=(iteration, index),
        finish_reason="stop",
        program=read(f"def f(x):\n    return x + {iteration} * 10 + {index}\n"),
        refusal=None,
        prompt_tokens=1,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )


def verdict_of(iteration: int, index: int) -> Evaluation:
    """The proxy ranks the wrong way round; every other candidate was rejected, and is an audit."""
    quality = (7 * iteration + 3 * index) % 16 / 100
    metrics = {"quick.score": -quality} | ({"cascade.audited": 1.0} if index % 2 else {})
    if index == 3:
        return Evaluation(score=None, failure=Failure.TIMEOUT, message=f"{iteration}: late")
    return Evaluation(score=quality, failure=None, metrics=metrics)


class Run:
    """A run that is lived through call by call: what it knew, and what it asked for."""

    def __init__(self, settings: RunSettings, problem: Problem) -> None:
        self._settings = settings
        self._problem = problem
        self.events: list[Event] = []
        self.asked: dict[int, Proposal] = {}
        self.state: RunState = restore(settings, problem, [], Letters()).state
        first = Evaluation(score=0.9, failure=None, metrics={"quick.score": 0.0})
        self.record(
            Session(number=0, engine="0", fingerprint="f"),
            Verdict(candidate=INITIAL, evaluation=first, program="def f(x):\n    return x\n"),
        )

    def record(self, *events: Event) -> None:
        for event in events:
            self.events.append(event)
            self.state.fold(Recorded(session=0, elapsed=0.0, event=event))

    def ask(self, iteration: int, *, island: int) -> Proposal:
        """Ask, and record the call."""
        proposal = self.state.search.ask(iteration, island=island)
        self.asked[iteration] = proposal
        self.record(call(proposal, known=len(self.events)))
        return proposal

    def children(self, iteration: int, *indices: int) -> None:
        parent = self.asked[iteration].parent.id
        self.record(*(child(iteration, index, parent=parent) for index in indices))

    def verdicts(self, iteration: int, *indices: int) -> None:
        for index in indices:
            self.record(
                Verdict(candidate=f"{iteration}.{index}", evaluation=verdict_of(iteration, index))
            )

    def iterate(self, iteration: int, *, island: int) -> None:
        self.ask(iteration, island=island)
        self.children(iteration, 1, 0, 2, 3)
        self.verdicts(iteration, 2, 0, 3, 1)

    def restored(self) -> Restored:
        """Return the run as another process finds it."""
        events = [Recorded(session=0, elapsed=0.0, event=event) for event in self.events]
        return restore(self._settings, self._problem, events, Letters())


def assert_alike(restored: Restored, run: Run) -> None:
    """Assert that a restored run knows and asks what the other one does, on each island."""
    state = restored.state
    assert state.history == run.state.history
    for island in (0, 1):
        assert state.is_open(island) == run.state.is_open(island)
        later = state.search.ask(99, island=island)
        assert later == run.state.search.ask(99, island=island)
    assert state.next_of([0, 1]) == run.state.next_of([0, 1])


@pytest.fixture
def run(settings: RunSettings, problem: Problem) -> Run:
    return Run(settings, problem)


def test_at_any_time_it_asks_what_the_run_would_have_asked(run: Run) -> None:
    assert_alike(run.restored(), run)
    for iteration in range(12):
        run.iterate(iteration, island=iteration % 3 % 2)
        assert_alike(run.restored(), run)
    assert run.restored().unfinished == ()


def test_it_shows_what_the_run_would_have_shown(
    settings: RunSettings, run: Run, problem: Problem
) -> None:
    for iteration in range(5):
        run.iterate(iteration, island=0)
    search = run.restored().state.search
    shown = [each.evaluation.message for each in search.ask(5, island=0).failures]
    parents = [run.asked[iteration].parent.id for iteration in range(5)]
    last = search.ask(5, island=0).parent.id
    assert shown == [f"{i}: late" for i, parent in enumerate(parents) if parent == last][-3:]
    assert shown

    uniform = replace(settings.search.parent, p_elite=0.0, p_uniform=1.0)
    run = Run(replace(settings, search=replace(settings.search, parent=uniform)), problem)
    for iteration in range(24):
        run.iterate(iteration, island=iteration % 2)
    asked = [*run.asked.values(), run.restored().state.search.ask(24, island=0)]
    compactions, others = asked[-1].compactions, sum(len(each.history) for each in asked)
    if settings.prompts.layout == "transcript":
        turns = [turn for each in asked for turn in each.lineage]
        assert len(turns) > 5 and (compactions, others) == (0, 0)
        assert all(turn.answer.startswith("answer ") and turn.answer_ids for turn in turns)
    else:
        assert others > 20 and (compactions > 0) == (settings.prompts.layout == "stable")


def test_calls_that_were_cut_short_are_proposed_as_they_were(run: Run) -> None:
    """Of both islands, with all that came between them and the death."""
    run.iterate(0, island=0)
    run.ask(1, island=0)
    run.children(1, 3)
    run.ask(2, island=1)
    run.children(1, 0)
    run.verdicts(1, 3)  # the parents that are drawn now, and what is shown, may be others
    run.children(2, 0, 1, 2)
    run.verdicts(2, 1, 0, 2)
    restored = run.restored()
    assert restored.unfinished == (run.asked[1], run.asked[2])
    history = restored.state.history
    assert [history.missing(history.calls[i]) for i in (1, 2)] == [[1, 2], [3]]
    assert_alike(restored, run)
    run.children(1, 1, 2)
    assert run.restored().unfinished == (run.asked[2],)
    run.children(2, 3)
    assert run.restored().unfinished == ()  # verdicts are missing, no children


def test_a_guess_is_proposed_with_what_was_known_when_it_was_made(run: Run) -> None:
    run.iterate(0, island=0)
    run.ask(1, island=0)
    run.children(1, 0, 1, 2, 3)
    run.verdicts(1, 0)
    known, guess = len(run.events), run.state.search.ask(2, island=0)
    assert [each.id for each in guess.pending] == ["1.1", "1.2", "1.3"]
    run.ask(3, island=1)
    run.verdicts(1, 3, 2, 1)
    late = run.state.search.ask(2, island=0, parent_id=guess.parent.id)
    assert late != guess and late.pending == ()
    run.record(call(guess, known=known, guessed=True), child(2, 1, parent=guess.parent.id))
    assert run.restored().unfinished == (run.asked[3], guess)
    assert_alike(run.restored(), run)


def test_calls_that_were_cut_short_have_the_hint_that_they_had(run: Run) -> None:
    run.iterate(0, island=0)
    run.record(Hint(number=0, text="try a median"))
    assert run.ask(1, island=0).hint == "try a median"
    guess, known = run.state.search.ask(2, island=1), len(run.events)
    run.record(Hint(number=1, text="or a spline"))
    run.record(call(guess, known=known, guessed=True))
    assert run.ask(3, island=0).hint == "or a spline"
    run.record(Hint(number=2, text=""))
    restored = run.restored()
    assert restored.unfinished == (run.asked[1], guess, run.asked[3])
    assert [each.text for each in restored.state.history.hints] == [
        *("try a median", "or a spline", "")
    ]
    assert_alike(restored, run)
    assert restored.state.search.ask(99, island=0).hint == ""


def test_a_parent_and_a_k_that_the_search_would_not_choose_are_kept(run: Run) -> None:
    """One taken for its cached prompt, or with a K of another time."""
    run.iterate(0, island=0)
    drawn = run.state.search.ask(1, island=0)
    other = next(each for each in ("0.0", "0.1", INITIAL) if each != drawn.parent.id)
    taken = replace(run.state.search.ask(1, island=0, parent_id=other), k=7)
    run.record(call(taken, known=len(run.events)))
    (proposal,) = run.restored().unfinished
    assert (proposal.parent.id, proposal.k, proposal) == (other, 7, taken)


def test_any_operator_is_proposed_as_it_was(settings: RunSettings, problem: Problem) -> None:
    """Each call in its turn is the one that a death cut short; the bandit learns from all."""
    operators = {"rewrite": 1.0, "crossover": 1.0, "repair": 1.0}
    search = replace(settings.search, operators=operators, mix=MIXES.read({"policy": "kl_ucb"}))
    run = Run(replace(settings, search=search), problem)
    for iteration in range(30):
        asked = run.ask(iteration, island=iteration % 2)
        assert run.restored().unfinished == (asked,)
        run.children(iteration, 1, 0, 2, 3)
        run.verdicts(iteration, 2, 0, 3, 1)
        assert_alike(run.restored(), run)
    asked_for = Counter(each.operator for each in run.asked.values())
    assert min(asked_for[name] for name in operators) > 2
    partners = [each.partner for each in run.asked.values() if each.operator == "crossover"]
    repaired = [each.repairs_id for each in run.asked.values() if each.operator == "repair"]
    assert None not in partners and None not in repaired
    assert len(set(repaired)) == len(repaired)


def test_a_guess_that_another_guess_led_to_is_proposed_as_it_was(
    settings: RunSettings, problem: Problem
) -> None:
    """It left out what the guess before it was to repair, of which the log knew nothing then."""
    search = replace(settings.search, operators={"rewrite": 1e-9, "repair": 1.0})
    run = Run(replace(settings, search=search), problem)
    run.iterate(0, island=0)
    run.ask(1, island=0)
    run.children(1, 3, 2, 1, 0)
    run.verdicts(1, 3)
    known = len(run.events)
    one = run.state.search.ask(2, island=0)
    other = run.state.search.ask(3, island=0, begun=[one])
    assert (one.repairs_id, other.repairs_id) == ("1.3", None)
    assert run.state.search.ask(3, island=0).repairs_id == "1.3"
    run.verdicts(1, 2, 1, 0)
    run.record(call(one, known=known, guessed=True))
    run.children(1)
    assert run.restored().unfinished == (one,)
    run.record(call(other, known=known, guessed=True))
    assert run.restored().unfinished == (one, other)


def test_guesses_given_up_leave_no_call_behind(run: Run) -> None:
    run.iterate(0, island=0)
    lost = GivenUp(
        iteration=1,
        attempt=0,
        island=0,
        parent=INITIAL,
        generated_tokens=5,
        prompt_tokens=9,
        cached_prompt_tokens=3,
        llm_seconds=0.5,
    )
    run.record(lost)
    restored = run.restored()
    assert (restored.unfinished, restored.state.history.given_up) == ((), [lost])
    assert restored.state.history.next_iteration == 1
    assert_alike(restored, run)


def test_a_told_cascade_takes_over_which_stage_is_switched_off(
    settings: RunSettings, problem: Problem, run: Run
) -> None:
    for iteration in range(40):
        run.iterate(iteration, island=0)
    recorded = SwitchedOff(stage="quick", iteration=17, correlation=0.01, error=0.2, pairs=99)
    for known, stage in ([], 0), ([recorded], 1):
        events = [Recorded(session=0, elapsed=0.0, event=event) for event in [*run.events, *known]]
        pool = NoPool()
        cascade = told_cascade(settings, problem, replay(events, problem.direction), pool)
        cascade.submit(candidate_id="39.9", program="", iteration=39)
        # What the records alone would say is not asked again: the session that had them decided.
        assert pool.stages == [stage]
        assert set(cascade.switched_off) == {event.stage for event in known}


def test_a_told_cascade_goes_on_judging(settings: RunSettings, problem: Problem, run: Run) -> None:
    for iteration in range(40):
        run.iterate(iteration, island=0)
    events = [Recorded(session=0, elapsed=0.0, event=event) for event in run.events]
    history = replay(events, problem.direction)
    told = told_cascade(settings, problem, history, NoPool())
    for name, verdict in history.verdicts.items():
        if name != INITIAL:  # the same again, as iterations to come
            iteration = 40 + history.children[name].iteration
            told.tell(f"again {name}", verdict.evaluation, iteration=iteration)
    told.submit(candidate_id="80.0", program="", iteration=80)
    assert told.switched_off["quick"].iteration > 40

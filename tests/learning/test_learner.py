"""The learner: which groups make up a step, which version calls begin with, what a resume keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hand_trainer import STEP, HandAdopter, HandTrainer

from engine import config
from engine.core import (
    INITIAL,
    Call,
    Child,
    Direction,
    Evaluation,
    Event,
    Refusal,
    SampledFrom,
    Session,
    Update,
    UserError,
    Verdict,
)
from engine.learning.group import Group, Member
from engine.learning.job import Done
from engine.learning.learner import Learner
from engine.learning.step import Step
from engine.store import Recorded, RunHistory
from engine.store.log import decode, encode

K = 3


class Bench:
    """A learner with all that it works with."""

    def __init__(self, folder: Path, *, groups: int = 2, max_lag: int = 1) -> None:
        self.trainer, self.adopter = HandTrainer(), HandAdopter()
        self.made: list[int] = []  # iterations of which a group was made
        self.history = RunHistory(direction=Direction.MAXIMISE)
        self.events: list[Event] = []
        self.learner = Learner(
            settings=replace(
                config.resolve(["learning=mean_baseline"]).learning, groups=groups, max_lag=max_lag
            ),
            history=self.history,
            folder=folder,
            make_group=self.make_group,
            trainer=self.trainer,  # type: ignore[arg-type]
            progress=lambda: 0.5,
        )
        self.record(
            Session(number=0, engine="0", fingerprint="f"),
            Verdict(
                candidate=INITIAL,
                evaluation=Evaluation(score=0.5, failure=None),
                program="x = 0\n",
            ),
        )
        self.learner.serve(self.adopter)

    def make_group(self, call: Call, history: RunHistory) -> Group:
        self.made.append(call.iteration)
        return Group(
            iteration=call.iteration,
            adapter=call.adapter,
            members=(Member(answers=(), reward=0.0),),
        )

    def record(self, *events: Event) -> None:
        for event in events:
            self.events.append(event)
            self.history.fold(Recorded(session=0, elapsed=0.0, event=event))
            self.learner.fold(event)

    def turn(self) -> list[Update]:
        updates = []
        for update in self.learner.completed():
            self.record(update)
            updates.append(update)
        return updates

    def judge(self, iteration: int, *, children: Sequence[int] = range(K)) -> None:
        for index in children:
            self.record(child(iteration, index))

    def step(self, step: Step = STEP) -> Update:
        """Have the step that is under way end and its adapter loaded, with its checkpoint there."""
        done = Done(job=self.trainer.jobs[-1], step=step)
        if done.stands:
            done.job.folder.mkdir(parents=True)
        self.trainer.finish(step)
        self.adopter.loaded = [] if self.turn() else [(done.version, 1.0)]
        self.turn()
        return self.history.updates[-1]

    def learn(self, iteration: int, step: Step = STEP) -> Update:
        """Have a call made and learned from."""
        self.call(iteration)
        self.judge(iteration)
        self.turn()
        return self.step(step)

    def call(self, iteration: int) -> None:
        self.record(call(iteration, adapter=self.history.adapter))


def call(iteration: int, *, adapter: int = 0) -> Call:
    return Call(
        iteration=iteration,
        island=0,
        parent=INITIAL,
        rule="elite",
        operator="infill",
        k=K,
        known=0,
        prompt="",
        prompt_tokens=3,
        temperatures=(1.0,) * K,
        seeds=(0,) * K,
        adapter=adapter,
        sampled_from=SampledFrom(prompt_ids=(1, 2, 3)),
    )


def child(iteration: int, index: int, refusal: Refusal | None = Refusal.UNPARSED) -> Child:
    return Child(
        id=f"{iteration}.{index}",
        iteration=iteration,
        index=index,
        parent=INITIAL,
        operator="infill",
        completion="y",
        completion_ids=(4,),
        finish_reason="stop",
        program=None,
        refusal=refusal,
        prompt_tokens=3,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
        logprobs=(-0.5,),
    )


def test_a_step_begins_once_enough_calls_are_judged(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.call(0)
    bench.call(1)
    bench.judge(1)
    bench.judge(0, children=[0, 1])
    assert bench.turn() == []
    assert bench.trainer.jobs == []
    bench.record(child(0, 2, refusal=None))  # a candidate: its verdict is out
    bench.turn()
    assert bench.trainer.jobs == []
    bench.record(Verdict(candidate="0.2", evaluation=Evaluation(score=0.6, failure=None)))
    bench.turn()
    (job,) = bench.trainer.jobs
    assert (job.number, job.version, job.progress) == (1, 0, 0.5)
    assert [group.iteration for group in job.groups] == [1, 0]
    assert job.folder == tmp_path / "adapters" / "000001"


def test_calls_have_a_new_version_only_when_it_is_loaded_and_recorded(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1)
    bench.call(0)
    bench.judge(0)
    bench.turn()
    bench.trainer.finish()
    assert bench.turn() == []
    assert bench.adopter.asked == [1]
    assert bench.history.adapter == 0
    bench.adopter.loaded = [(1, 7.5)]
    (update,) = bench.turn()
    assert (update.number, update.version, update.groups) == (1, 1, (0,))
    assert (update.swap_ms, update.reward) == (7.5, 0.25)
    assert bench.history.adapter == 1


def test_a_skipped_step_leaves_the_version(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1)
    bench.call(0)
    bench.judge(0)
    bench.turn()
    bench.trainer.finish(replace(STEP, skipped="all rewards are equal"))
    (update,) = bench.turn()
    assert (update.number, update.version, update.skipped) == (1, 0, "all rewards are equal")
    assert bench.adopter.asked == []
    bench.call(1)
    bench.judge(1)
    bench.turn()
    assert bench.trainer.jobs[-1].number == 2


def test_a_collapse_goes_back_to_an_earlier_version(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1)
    for number in (1, 2):
        bench.call(number)
        bench.judge(number)
        bench.turn()
        bench.trainer.finish()
        bench.turn()
        bench.adopter.loaded = [(number, 1.0)]
        bench.turn()
    bench.call(3)
    bench.judge(3)
    bench.turn()
    bench.trainer.finish(replace(STEP, rolled_back="entropy fell", version=1))
    bench.turn()
    assert bench.adopter.asked == [1, 2, 1]
    bench.adopter.loaded = [(1, 1.0)]
    (update,) = bench.turn()
    assert (update.number, update.version, update.rolled_back) == (3, 1, "entropy fell")


def test_no_group_is_learned_twice_and_the_latest_come_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for iteration in range(5):
        bench.call(iteration)
        bench.judge(iteration)
    bench.turn()
    assert [group.iteration for group in bench.trainer.jobs[0].groups] == [3, 4]
    bench.trainer.finish()
    bench.turn()
    bench.adopter.loaded = [(1, 1.0)]
    bench.turn()
    assert [group.iteration for group in bench.trainer.jobs[1].groups] == [1, 2]


def test_steps_that_are_taken_back_let_no_groups_pile_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    back = replace(STEP, rolled_back="not finite", version=0)
    for iteration in range(300):
        bench.call(iteration)
        bench.judge(iteration)
    bench.turn()
    updates = [bench.step(back) for _ in range(128)]
    assert bench.made == [*range(299, 43, -1)]  # two a step, and none that waited too long
    assert [update.groups for update in updates[:2]] == [(298, 299), (296, 297)]
    assert [update.stale for update in updates] == [300 - 256] + [0] * 127
    bench.turn()
    assert len(bench.trainer.jobs) == 128


def test_groups_that_lag_too_far_behind_are_left_out_and_counted(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1, max_lag=1)
    for iteration in range(4):
        bench.call(iteration)
    for iteration in (0, 1):  # two steps, both of groups of the model itself
        bench.judge(iteration)
        bench.turn()
        bench.trainer.finish()
        bench.turn()
        bench.adopter.loaded = [(iteration + 1, 1.0)]
        bench.turn()
    bench.judge(2)  # sampled from version 0; version 2 is in force
    bench.turn()
    assert len(bench.trainer.jobs) == 2
    bench.call(4)
    bench.judge(4)
    bench.turn()
    assert [group.iteration for group in bench.trainer.jobs[2].groups] == [4]
    bench.trainer.finish()
    bench.turn()
    bench.adopter.loaded = [(3, 1.0)]
    (update,) = bench.turn()
    assert update.stale == 1


def test_a_resumed_run_goes_on_with_what_was_not_learned(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1)
    for iteration in range(3):
        bench.call(iteration)
    bench.judge(0)
    bench.turn()
    bench.trainer.finish()
    bench.turn()
    bench.adopter.loaded = [(1, 1.0)]
    bench.turn()
    bench.call(3)
    bench.judge(1)  # judged, and not learned from
    events = [*bench.history.calls.values(), *bench.history.children.values()]

    again = Bench(tmp_path, groups=1)
    again.record(*events, *bench.history.updates)
    with pytest.raises(UserError, match="000001 is missing, which the run goes on with"):
        again.learner.serve(HandAdopter())
    (tmp_path / "adapters" / "000001").mkdir(parents=True)
    again.learner.serve(adopter := HandAdopter())
    assert adopter.asked == [1]  # for call 3, and the next ones
    again.turn()
    (job,) = again.trainer.jobs
    assert (job.number, job.version) == (2, 1)
    assert [group.iteration for group in job.groups] == [1]


def test_a_resume_needs_no_checkpoint_for_children_that_are_decoded(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1)
    for number in range(1, 10):
        bench.learn(number)
    assert not (tmp_path / "adapters" / "000001").exists()
    # A guess that was decoded with version 1, and came true only now.
    guess = [child(100, index, refusal=None) for index in range(K)]
    bench.record(call(100, adapter=1), *guess)

    again = Bench(tmp_path, groups=1)
    again.record(*bench.events[2:])  # the first two are every bench's
    again.learner.serve(adopter := HandAdopter())
    assert adopter.asked == [9]


def test_checkpoints_of_open_calls_and_the_latest_stay(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1)
    held = 0
    for number in range(1, 10):
        bench.call(number)
        if number == 2:
            held = bench.history.adapter
            bench.call(100)  # stays open, on the version of now
        bench.judge(number)
        bench.turn()
        (tmp_path / "adapters" / f"{number:06}").mkdir(parents=True)
        bench.trainer.finish()
        bench.turn()
        bench.adopter.loaded = [(number, 1.0)]
        bench.turn()
    kept = {int(folder.name) for folder in (tmp_path / "adapters").iterdir()}
    assert kept == {held, 4, 5, 6, 7, 8, 9}


def test_checkpoints_of_requests_that_no_recorded_call_names_stay(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1)
    under_way = {0}
    bench.learner.spare(lambda: under_way)
    for number in range(1, 10):
        bench.learn(number)
        if number == 2:
            under_way = {0, 2}
    kept = {int(folder.name) for folder in (tmp_path / "adapters").iterdir()}
    assert kept == {2, 4, 5, 6, 7, 8, 9}
    under_way = set()
    bench.learn(10)
    assert not (tmp_path / "adapters" / "000002").exists()


@pytest.mark.parametrize("lost", [True, False])
def test_a_lost_trainer_gets_no_more_steps(tmp_path: Path, lost: bool) -> None:
    bench = Bench(tmp_path, groups=1)
    bench.trainer.is_lost = lost
    bench.call(0)
    bench.judge(0)
    bench.turn()
    assert len(bench.trainer.jobs) == (0 if lost else 1)


def test_lag_is_counted_in_changes_of_the_version_and_not_in_steps(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1, max_lag=0)
    bench.call(100)
    for number in (1, 2):
        assert bench.learn(number, replace(STEP, skipped="nothing")).version == 0
    bench.judge(100)  # two steps on, and still of the version in force
    bench.turn()
    assert bench.step().lag == 0

    bench = Bench(tmp_path / "other", groups=1, max_lag=1)
    for number in (1, 2, 3):
        bench.learn(number)
    bench.call(100)
    assert bench.learn(4, replace(STEP, rolled_back="entropy fell", version=1)).version == 1
    bench.call(101)
    bench.judge(101)
    bench.turn()
    assert bench.step().lag == 0
    assert bench.history.adapter == 5
    bench.judge(100)  # of version 3; then came 1 and 5
    bench.turn()
    assert len(bench.trainer.jobs) == 5


def test_a_group_that_came_too_late_is_counted_once_over_all_sessions(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1, max_lag=0)
    bench.call(100)
    bench.call(101)
    bench.learn(1)
    bench.judge(100)
    assert bench.learn(2).stale == 1
    bench.judge(101)
    history = bench.history
    again = Bench(tmp_path, groups=1, max_lag=0)
    again.record(*history.calls.values())
    first, second = history.updates
    of = {i: [child(i, index) for index in range(K)] for i in (1, 2, 100, 101)}
    again.record(*of[1], first, *of[100], *of[2], second, *of[101])
    again.learner.serve(again.adopter)
    assert again.learn(3).stale == 1  # 101, and not 100 again


def test_the_checkpoints_that_a_collapse_goes_back_to_stay(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1)
    for number in range(1, 7):
        bench.learn(number)
    bench.learn(7, replace(STEP, rolled_back="entropy fell", version=3))
    for number in range(8, 12):  # the trainer may go back to the versions that these began with
        bench.learn(number)
    kept = {int(folder.name) for folder in (tmp_path / "adapters").iterdir()}
    assert kept == {6, 3, 8, 9, 10, 11}


def test_figures_that_are_not_finite_can_be_recorded(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1)
    bad = replace(STEP, gradient_norm=math.inf, kl=math.nan, rolled_back="not finite", version=0)
    update = bench.learn(1, bad)
    assert (update.gradient_norm, update.kl, update.stands) == (0.0, 0.0, False)
    assert decode(update.KIND, encode(update)) == update


def test_a_step_is_told_to_which_versions_it_may_go_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1)
    for number in range(1, 9):
        bench.learn(number)
    assert bench.trainer.jobs[0].kept == {0}
    assert bench.trainer.jobs[-1].kept == {0, 2, 3, 4, 5, 6, 7}
    bench.learn(9, replace(STEP, rolled_back="entropy fell", version=5))
    bench.learn(10)
    bench.learn(11)
    # What the trainer forgets at a collapse, one that is restored has again: 2, 3 and 4.
    assert [job.kept for job in bench.trainer.jobs[-2:]] == [{5}, {5, 10}]

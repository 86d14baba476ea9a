"""Steps that go wrong are taken back, and what can't be trained is refused."""

import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import torch

from engine.core import Update, UserError
from engine.learning import (
    Ask,
    Group,
    Setup,
    SteadyTrainer,
    Step,
    Steps,
    Versions,
    checkpoint,
    make_step,
    trainer_of,
)
from engine.learning.collapse import Variety, of_entropy
from engine.learning.trainer import Trainer
from engine.settings import LearningSettings

Settings = Callable[..., LearningSettings]
Groups = Callable[..., Group]
SECONDS = 300.0
ANSWERS = {"good": 1.0, "bad": 0.0, "gone": 0.5, "bat": 0.0}


class Subject:
    """A trainer whose adapter's effect can be compared."""

    def __init__(self, tiny: Path, settings: LearningSettings, group: Group) -> None:
        self.trainer = Trainer(weights=tiny, settings=settings, seed=0, dtype=torch.float32)
        self._answers = [member.answers[0] for member in group.members]
        self.group = group
        self.variety = Variety()

    def step(self, *, version: int, group: Group | None = None) -> Step:
        return self.made(group or self.group, version=version, kept=None)

    def made(self, group: Group, *, version: int, kept: set[int] | None) -> Step:
        step = self.trainer.step(
            [group], version=version, progress=0.5, kept=kept, variety=self.variety
        )
        self.variety = self.variety.after(step.unique)
        return step

    def effect(self) -> torch.Tensor:
        return torch.cat(self.trainer.logprobs(self._answers))


@pytest.fixture
def subject(tiny: Path, learning: Settings, group_of: Groups) -> Callable[..., Subject]:
    return lambda **changes: Subject(tiny, learning(**changes), group_of("x = ", ANSWERS))


@pytest.mark.parametrize(
    ("rate", "reason"), [(1.0, "nats a token away, above 2"), (1e30, "not finite")]
)
def test_an_adapter_far_from_the_model_is_taken_back(
    subject: Callable[..., Subject], rate: float, reason: str
) -> None:
    one = subject(learning_rate=rate)
    before = one.effect()
    step = one.step(version=3)
    assert step.rolled_back is not None and reason in step.rolled_back
    assert step.version == 3
    assert torch.equal(one.effect(), before)


def test_after_a_bad_gradient_learning_goes_on_as_if_it_had_not_been(
    subject: Callable[..., Subject], group_of: Groups
) -> None:
    one, other = subject(), subject()
    for each in (one, other):
        each.step(version=0)
    step = one.step(version=1, group=group_of("x = ", {"a": 1e150, "b": 0.0}))
    assert step.rolled_back == "the gradient is not finite"
    for each in (one, other):
        assert each.step(version=1).rolled_back is None
    assert torch.equal(one.effect(), other.effect())


def test_collapsed_entropy_goes_back_to_the_oldest_of_four(
    subject: Callable[..., Subject],
) -> None:
    one = subject(learning_rate=1.5e-2, most_kl=1e3)
    effects = []
    for version in range(40):
        effects.append(one.effect())
        step = one.step(version=version)
        if step.rolled_back is not None:
            break
    assert step.rolled_back is not None and "entropy fell" in step.rolled_back
    assert version > 3
    assert step.version == version - 3
    assert torch.equal(one.effect(), effects[version - 3])


def test_collapsed_variety_is_seen_even_where_nothing_could_be_learned(
    subject: Callable[..., Subject], group_of: Groups
) -> None:
    one = subject()
    for version in range(3):
        assert one.step(version=version).unique == 0.5
    same = group_of("x = ", {"same": 0.0, "also": 0.0})
    steps = [one.step(version=3, group=same) for _ in range(4)]
    reason = "no group's rewards tell its children apart"
    assert [step.skipped for step in steps] == [reason] * 3 + [None]
    assert steps[3].rolled_back is not None and "new valid children fell" in steps[3].rolled_back
    assert steps[3].version == 0
    one.variety = one.variety.forgiven()
    assert one.step(version=0).rolled_back is None


class TrainerHere(SteadyTrainer):
    """A trainer in this process."""

    def __init__(self, setup: Setup, *, folder: Path | None, notify: Callable[[], object]) -> None:
        self._setup = setup
        super().__init__(checkpoint=folder, notify=notify)

    @contextmanager
    def _started(self, checkpoint: Path | None) -> Iterator[Ask]:
        yield partial(make_step, trainer_of(self._setup, checkpoint))

    def _kill(self) -> None:
        pass


def test_collapsed_variety_is_seen_by_trainers_that_begin_again(
    tiny: Path, learning: Settings, group_of: Groups, tmp_path: Path
) -> None:
    settings = learning(groups=1)
    setup = Setup(weights=tiny, settings=settings, seed=0, device="cpu", dtype="float32")
    good, same = group_of("x = ", ANSWERS), group_of("x = ", {"same": 0.0, "also": 0.0})
    updates: list[Update] = []
    sessions = [[good] * 3 + [same] * 2, [same] * 2, [good] + [same] * 3]
    for groups in sessions:
        versions, bell = Versions(max_lag=9), threading.Event()
        for update in updates:
            versions.fold(update)
        folder = checkpoint(tmp_path, versions.latest) if versions.latest else None
        with TrainerHere(setup, folder=folder, notify=bell.set) as trainer:
            steps = Steps(
                settings=settings,
                folder=tmp_path,
                trainer=trainer,
                versions=versions,
                progress=lambda: 0.5,
            )
            for group in groups:
                steps.begin([group])
                assert bell.wait(SECONDS)
                bell.clear()
                done = trainer.completed()
                assert done is not None
                updates.append(steps.update(done, stale=0))
                versions.fold(updates[-1])
    assert [each.number for each in updates if each.stands] == [1, 2, 3, 8]
    back = {each.number: each.rolled_back for each in updates if each.rolled_back is not None}
    # The second time, the latest four begin with the step after the first collapse.
    assert back == {
        7: "the share of new valid children fell to 0.000, below 0.250",
        11: "the share of new valid children fell to 0.125, below 0.250",
    }
    assert updates[6].version == 0


def test_an_entropy_that_is_not_finite_is_no_collapse_and_no_measure_for_one() -> None:
    assert [of_entropy(each, own=1.0) for each in (math.nan, 1.0, 0.3)] == [None] * 3
    assert of_entropy(0.5, own=math.nan) is None
    assert of_entropy(0.2, own=1.0) == "the tokens' entropy fell to 0.200 nats, below 0.300"


@pytest.mark.parametrize(("kept", "back"), [(None, 2), ({4, 5, 9}, 4), ({5}, 5), (set(), 5)])
def test_a_collapse_goes_back_to_no_version_whose_checkpoint_is_gone(
    subject: Callable[..., Subject], group_of: Groups, kept: set[int] | None, back: int
) -> None:
    one = subject()
    effects = []
    for version in range(5):
        effects.append(one.effect())
        assert one.step(version=version).rolled_back is None
    effects.append(one.effect())
    same = group_of("x = ", {"same": 0.0, "also": 0.0})
    for _ in range(2):
        assert one.step(version=5, group=same).skipped is not None
    step = one.made(same, version=5, kept=kept)
    assert step.rolled_back is not None and "new valid children fell" in step.rolled_back
    assert step.version == back
    assert torch.equal(one.effect(), effects[back])


def test_a_restored_trainer_has_no_momentum_from_before_a_collapse(
    subject: Callable[..., Subject], tmp_path: Path
) -> None:
    """All go on from version 2, to which a collapse had gone back, but the last one."""
    restored, anew, going_on = subject(), subject(), subject()
    for version in range(2):
        restored.step(version=version)
    restored.trainer.save(tmp_path)
    for one in (anew, going_on):
        one.trainer.load(tmp_path)
    own = anew.trainer._optimizer
    own.begin_at(own.parameters())
    restored.trainer.load(tmp_path)
    assert restored.made(restored.group, version=2, kept={2}).rolled_back is None
    assert anew.step(version=2).rolled_back is None
    assert going_on.made(going_on.group, version=2, kept={0, 1, 2}).rolled_back is None
    assert torch.equal(restored.effect(), anew.effect())
    assert not torch.equal(restored.effect(), going_on.effect())


def test_a_step_without_a_choice_is_skipped(
    subject: Callable[..., Subject], group_of: Groups
) -> None:
    one = subject()
    forced = group_of("x = ", {"a": 1.0, "b": 0.0}, grammar='root ::= "a" "b"')
    assert one.step(version=4, group=Group(iteration=1, adapter=4, members=())).skipped
    half = one.step(version=4, group=forced)
    assert half.skipped == "no token was a choice"
    assert half.version == 4


def test_quantised_weights_are_refused(tiny: Path, learning: Settings, tmp_path: Path) -> None:
    own = json.loads((tiny / "config.json").read_text()) | {
        "quantization_config": {"quant_method": "fp8"}
    }
    (tmp_path / "config.json").write_text(json.dumps(own))
    with pytest.raises(UserError, match="quantised and can't be trained"):
        Trainer(weights=tmp_path, settings=learning(), seed=0)


def test_a_state_that_does_not_fit_is_refused(
    tiny: Path, learning: Settings, tmp_path: Path
) -> None:
    made = Trainer(weights=tiny, settings=learning(), seed=0, dtype=torch.float32)
    made.save(tmp_path)
    other = Trainer(weights=tiny, settings=learning(adapter="full"), seed=0, dtype=torch.float32)
    with pytest.raises(UserError, match="can't be read"):
        other.load(tmp_path)
    (tmp_path / "trainer.pt").unlink()
    with pytest.raises(UserError, match=r"trainer\.pt"):
        made.load(tmp_path)

"""Steps of the trainer on a tiny model."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.core import UserError
from engine.learning.group import Answer, Group
from engine.learning.trainer import Trainer
from engine.settings import LearningSettings

Settings = Callable[..., LearningSettings]
Groups = Callable[..., Group]


def trainer(tiny: Path, settings: LearningSettings) -> Trainer:
    return Trainer(weights=tiny, settings=settings, seed=0, dtype=torch.float32)


@pytest.mark.parametrize("adapter", ["last_block", "full"])
def test_rewarded_answers_become_likelier(
    tiny: Path, learning: Settings, group_of: Groups, adapter: str
) -> None:
    one = trainer(tiny, learning(adapter=adapter, learning_rate=3e-3))
    group = group_of("x = ", {"good": 1.0, "bad": 0.0, "gone": 0.0, "bat": 0.0})
    answers = [member.answers[0] for member in group.members]
    before = [each.sum() for each in one.logprobs(answers)]
    steps = [one.step([group], version=number, progress=0.1) for number in range(5)]
    after = [each.sum() for each in one.logprobs(answers)]
    assert after[0] > before[0] + 0.1
    assert max(after[index] - before[index] for index in (1, 3)) < 0
    assert all(step.skipped is None and step.rolled_back is None for step in steps)
    assert steps[0].tokens == 14
    assert 0 < steps[0].kl < steps[-1].kl
    assert steps[0].entropy > 0
    assert steps[0].gradient_norm > 0
    assert steps[0].clip_share == 0


@pytest.mark.parametrize("method", ["mean_baseline", "expert"])
def test_a_restored_trainer_goes_on_bit_for_bit(
    tiny: Path, learning: Settings, group_of: Groups, tmp_path: Path, method: str
) -> None:
    settings = learning(method=method, learning_rate=3e-3)
    groups = [
        group_of(f"y{number} = ", {"a + b": 1.0, "a": 0.5, "b": 0.0, "c": -1.0})
        for number in range(3)
    ]
    first = trainer(tiny, settings)
    first.step(groups[:1], version=0, progress=0.1)
    first.step(groups[1:2], version=1, progress=0.2)
    first.save(tmp_path / "saved")
    second = trainer(tiny, settings)
    second.load(tmp_path / "saved")
    ends = []
    for name, one in (("first", first), ("second", second)):
        one.step(groups[2:], version=2, progress=0.3)
        one.save(tmp_path / name)
        ends.append((tmp_path / name / "adapter_model.safetensors").read_bytes())
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    "harm",
    [
        lambda state: state.update(earlier=3),
        lambda state: state.update(examples=[{"worth": 1}]),
        lambda state: state.update(random=torch.zeros(3)),
        lambda state: state.pop("random"),
        lambda state: state.update(optimizer=None),
    ],
)
def test_a_damaged_state_is_refused_in_a_line(
    tiny: Path, learning: Settings, tmp_path: Path, harm: Callable[[dict[str, object]], object]
) -> None:
    one = trainer(tiny, learning())
    one.save(tmp_path)
    state = torch.load(tmp_path / "trainer.pt", weights_only=True)
    harm(state)
    torch.save(state, tmp_path / "trainer.pt")
    with pytest.raises(UserError, match=r"state in .* can't be read") as caught:
        one.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_log_probabilities_do_not_depend_on_what_is_computed_beside(
    tiny: Path, learning: Settings, answered: Callable[..., Answer]
) -> None:
    one = trainer(tiny, learning())
    answers = [
        answered("let x = ", "1 + y"),
        answered("let x = ", "1 - y", temperature=0.5),
        answered("let y", "!"),
        answered("let x = 1", " + y"),
    ]
    together = one.logprobs(answers)
    for answer, found in zip(answers, together, strict=True):
        assert torch.allclose(one.logprobs([answer])[0], found, atol=1e-5)
    assert torch.allclose(together[0][1:], together[3], atol=1e-5)


@pytest.mark.parametrize("adapter", ["last_block", "full"])
def test_siblings_that_are_split_make_the_same_step(
    tiny: Path,
    learning: Settings,
    group_of: Groups,
    monkeypatch: pytest.MonkeyPatch,
    adapter: str,
) -> None:
    group = group_of("x = ", {"good": 1.0, "bad": 0.0, "gone": 0.5, "a + b": 0.0, "c": 0.0})
    answers = [member.answers[0] for member in group.members]
    steps, effects = [], []
    for most in (10**6, 12):
        monkeypatch.setattr("engine.learning.batch._MOST_TOKENS", most)
        one = trainer(tiny, learning(adapter=adapter, learning_rate=3e-3, passes=2))
        steps.append(one.step([group], version=0, progress=0.1))
        effects.append(torch.cat(one.logprobs(answers)))
    whole, parted = steps
    assert parted.tokens == whole.tokens
    for name in ("gradient_norm", "kl", "entropy", "clip_share"):
        assert getattr(parted, name) == pytest.approx(getattr(whole, name), rel=1e-4)
    assert torch.allclose(*effects, atol=1e-4)


def test_a_second_pass_is_clipped(tiny: Path, learning: Settings, group_of: Groups) -> None:
    group = group_of("x = ", {"good": 1.0, "bad": 0.0})
    once = trainer(tiny, learning(learning_rate=1e-2)).step([group], version=0, progress=0.1)
    twice = trainer(tiny, learning(learning_rate=1e-2, passes=2))
    step = twice.step([group], version=0, progress=0.1)
    assert once.clip_share == 0 < step.clip_share
    assert step.kl > once.kl


def test_mismatch_and_repeats_are_reported(
    tiny: Path, learning: Settings, group_of: Groups
) -> None:
    one = trainer(tiny, learning())
    group = group_of("x = ", {"good": 1.0, "bad": 0.0, "gone": 0.0})
    members = tuple(
        replace(member, answers=(replace(answer, logprobs=tuple((exact + 0.25).tolist())),))
        for member in group.members
        for answer in member.answers
        for exact in one.logprobs([answer])
    )
    group = replace(group, adapter=3, members=(*members, members[0]))
    step = one.step([group], version=4, progress=0.1)
    assert step.mismatch == pytest.approx(0.25, abs=1e-5)
    assert (step.common, step.unique) == (0.5, 0.25)
    assert step.reward == 0.5


def test_groups_that_say_nothing_are_left_out(
    tiny: Path, learning: Settings, group_of: Groups
) -> None:
    group = group_of("x = ", {"good": 1.0, "bad": 0.0})
    step = trainer(tiny, learning()).step(
        [group, group_of("y = ", {"a": 0.5, "b": 0.5})], version=0, progress=0.1
    )
    assert step.tokens == 7
    assert step.spread == pytest.approx(0.5)


def test_the_adapter_is_one_that_peft_reads(
    tiny: Path, learning: Settings, group_of: Groups, tmp_path: Path
) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    one = trainer(tiny, learning(learning_rate=3e-3))
    group = group_of("x = ", {"good": 1.0, "bad": 0.0})
    one.step([group], version=0, progress=0.1)
    one.save(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    read = PeftModel.from_pretrained(model, str(tmp_path)).eval()
    answer = group.members[0].answers[0]
    ids = torch.tensor([answer.sampled_from.prompt_ids + answer.token_ids])
    with torch.no_grad():
        logprobs = read(input_ids=ids).logits[0].log_softmax(dim=-1)
    count = len(answer.token_ids)
    expected = logprobs[-count - 1 : -1].gather(1, ids[0, -count:, None])[:, 0]
    assert torch.allclose(one.logprobs([answer])[0], expected, atol=1e-4)


def test_an_expert_imitates_the_best_and_begins_at_the_model(
    tiny: Path, learning: Settings, group_of: Groups
) -> None:
    one = trainer(tiny, learning(method="expert", learning_rate=3e-3))
    groups = [
        group_of(f"x{number} = ", {"good": 1.0, "bad": 0.0, "gone": -1.0}) for number in range(3)
    ]
    answers = [member.answers[0] for member in groups[0].members]
    before = [each.sum() for each in one.logprobs(answers)]
    step = one.step(groups, version=0, progress=0.1)
    after = [each.sum() for each in one.logprobs(answers)]
    assert after[0] > before[0] + 0.5
    assert step.tokens == 12
    again = one.step([group_of("z", {"no": 0.0, "nil": 0.0})], version=1, progress=0.2)
    assert again.tokens == 12  # the examples stay
    assert sum(each.sum() for each in one.logprobs(answers[:1])) > before[0] + 0.5


def test_an_expert_without_an_example_does_nothing(
    tiny: Path, learning: Settings, group_of: Groups
) -> None:
    one = trainer(tiny, learning(method="expert"))
    step = one.step([group_of("z", {"no": 0.0, "nil": 0.0})], version=0, progress=0.1)
    assert step.skipped == "there is no new valid child to imitate"

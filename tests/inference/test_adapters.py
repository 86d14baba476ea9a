"""Adapters in the real engine, with random weights: what they change, and what they must not.

The engine computes in float32 here, so that its log-probabilities are those of transformers and
peft but for rounding, and an adapter's effect is far above it. No test here asks for the fixture
``model``: of two engines in one process, the one that is closed first ends what both share.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from failing import at, inject
from peft import PeftModel
from safetensors.torch import load_file, save_file

from bench.adapters import ADAPTERS, random_adapter
from engine import config
from engine.core import Generation, UserError
from engine.inference import (
    LanguageModel,
    Sampling,
    SteadyModel,
    find_weights,
    is_cpu_build,
    prepare,
)
from engine.inference.adapters import OWNED, SLOTS, Adapters
from engine.inference.engine_options import check_engine_options
from engine.settings import LearningSettings, ModelSettings

STORY = "Once upon a time, in a village by the sea, there lived an old fisherman who " * 4
VERSIONS = SLOTS + 2
pytestmark = pytest.mark.skipif(
    not is_cpu_build(), reason="on a GPU vLLM's adapters take no float32, which is compared here"
)
CLOSE = 2e-3  # of a log-probability in float32, by which kernel and which batch


class Learner:
    """A model that learns, with adapters on disk, and what transformers says of each."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, chosen = kind, ["learning=grpo", f"learning.adapter={kind}"]
        arguments = ["model=smollm2", "model.max_model_len=1024", "model.dtype=float32"]
        settings = config.resolve([*arguments, "model.kv_cache_gb=1", *chosen])
        prepare(threads=1, kv_cache_gb=1)
        weights = find_weights(settings.model)
        self.folders = {version: folder / f"{version}" for version in range(1, VERSIONS + 1)}
        self.peft: PeftModel | None = None
        for version, each in self.folders.items():
            made = random_adapter(weights, each, kind=kind, seed=version, scale=0.05)
            if version == 1:
                self.peft = made.eval()
        self.model = LanguageModel(
            settings=settings.model, folder=weights, seed=0, learning=settings.learning
        )
        self.prompt = self.model.encode(STORY)
        for version in (1, 2):
            self.model.adopt(version, self.folders[version])

    def logits(self, token_ids: Sequence[int], *, version: int) -> torch.Tensor:
        """Return transformers' logits of the model itself, or with the first version."""
        assert self.peft is not None
        with torch.inference_mode():
            ids = torch.tensor([list(token_ids)])
            with nullcontext() if version else self.peft.disable_adapter():
                logits: torch.Tensor = self.peft(ids).logits[0]
        return logits

    def ask(self, version: int, *each: Sampling) -> list[Generation]:
        fan = self.model.fanout(token_ids=self.prompt, sampling=each, adapter=version)
        return sorted(fan, key=lambda child: child.index)


@pytest.fixture(scope="module", params=["last_block", pytest.param("full", marks=pytest.mark.slow)])
def learner(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Learner]:
    learner = Learner(request.param, tmp_path_factory.mktemp(request.param))
    yield learner
    learner.model.close()


def sampling(
    seed: int = 0, *, temperature: float = 0.8, max_tokens: int = 8, **more: Any
) -> Sampling:
    return Sampling(temperature=temperature, seed=seed, stop=(), max_tokens=max_tokens, **more)


def same(one: Sequence[Generation], other: Sequence[Generation]) -> None:
    assert [child.token_ids for child in one] == [child.token_ids for child in other]
    for child, again in zip(one, other, strict=True):
        assert child.logprobs == pytest.approx(again.logprobs, abs=CLOSE)


def differs(one: Sequence[Generation], other: Sequence[Generation]) -> bool:
    first = [(child.token_ids[0], child.logprobs[0]) for child in one]
    second = [(child.token_ids[0], child.logprobs[0]) for child in other]
    return any(
        a != c or abs(b - d) > 10 * CLOSE for (a, b), (c, d) in zip(first, second, strict=True)
    )


# Log-probabilities.


@pytest.mark.parametrize("version", [0, 1])
def test_logprobs_are_those_of_temperature_and_bans(learner: Learner, version: int) -> None:
    (dot,) = learner.model.encode(".")
    (free,) = learner.ask(version, sampling(3, temperature=1.3))
    banned = (free.token_ids[0], dot)
    spread = [sampling(seed, temperature=t, banned=banned) for seed, t in ((3, 1.3), (4, 0.5))]
    for child, asked in zip(learner.ask(version, *spread), spread, strict=True):
        logits = learner.logits([*learner.prompt, *child.token_ids], version=version)
        rows = logits[len(learner.prompt) - 1 : -1].clone()
        rows[:, list(banned)] -= 100.0
        expected = (rows / asked.temperature).log_softmax(-1)
        found = expected[range(len(rows)), list(child.token_ids)]
        assert len(child.logprobs) == child.generated_tokens
        assert child.logprobs == pytest.approx(found.tolist(), abs=CLOSE)


WORDS = ("red apple", "red apples", "green pear", "blue sea", "blue seal")


def test_logprobs_are_those_of_the_grammar(learner: Learner) -> None:
    """Which tokens a grammar of few sentences allows is found here by trying all."""
    grammar = "root ::= " + " | ".join(f'"{word}"' for word in WORDS)
    tokenizer = learner.model._tokenizer
    pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    special = {*tokenizer.all_special_ids}
    texts = [piece.replace("Ġ", " ") for piece in pieces]
    red = learner.model.encode("red")[0]
    asked = [sampling(seed, temperature=1.5, grammar=grammar, banned=(red,)) for seed in range(6)]
    children = learner.ask(1, *asked)
    assert len({child.text for child in children}) > 1
    forced = 0
    for child in children:
        assert child.text in WORDS
        logits = learner.logits([*learner.prompt, *child.token_ids], version=1)
        rows, written = logits[len(learner.prompt) - 1 : -1].clone(), ""
        for row, token, found in zip(rows, child.token_ids, child.logprobs, strict=True):
            allowed = [
                number
                for number, text in enumerate(texts)
                if number not in special
                and text
                and any(word.startswith(written + text) for word in WORDS)
            ]
            if written in WORDS:
                allowed.append(tokenizer.eos_token_id)
            row[red] -= 100.0
            masked = torch.full_like(row, -math.inf)
            masked[allowed] = row[allowed]
            expected = (masked / 1.5).log_softmax(-1)[token].item()
            assert found == pytest.approx(expected, abs=CLOSE)
            forced += found == 0.0
            written += texts[token] if token not in special else ""
    assert forced


def test_children_that_are_ended_have_logprobs_of_exactly_their_tokens(learner: Learner) -> None:
    each = [sampling(seed, max_tokens=20) for seed in range(4)]
    whole = learner.ask(1, *each)
    fan = learner.model.fanout(token_ids=learner.prompt, sampling=each, adapter=1)
    fan.abort(3)
    for _ in range(5):
        learner.model.step()
    fan.abort(1)
    children = sorted(fan, key=lambda child: child.index)
    assert [child.generated_tokens for child in children][1::2] == [5, 0]
    for child, ended in zip(whole, children, strict=True):
        count = ended.generated_tokens
        assert len(ended.logprobs) == count
        assert ended.token_ids == child.token_ids[:count]
        assert ended.logprobs == pytest.approx(child.logprobs[:count], abs=CLOSE)


# Versions.


def test_an_adapter_computes_what_peft_computes_and_a_seed_gives_it_again(
    learner: Learner,
) -> None:
    one = [sampling(seed, temperature=1.0) for seed in range(4)]
    base, first, second = (learner.ask(version, *one) for version in (0, 1, 2))
    assert differs(base, first) and differs(base, second) and differs(first, second)
    same(first, learner.ask(1, *one))
    for child in first:
        logits = learner.logits([*learner.prompt, *child.token_ids], version=1)
        expected = logits[len(learner.prompt) - 1 : -1].log_softmax(-1)
        found = expected[range(child.generated_tokens), list(child.token_ids)]
        assert child.logprobs == pytest.approx(found.tolist(), abs=CLOSE)


def test_a_batch_may_mix_the_model_itself_and_more_versions_than_there_are_slots(
    learner: Learner,
) -> None:
    spread = [sampling(seed) for seed in range(3)]
    for version, folder in learner.folders.items():
        learner.model.adopt(version, folder)
    versions = [0, *learner.folders, 0]
    alone = {version: learner.ask(version, *spread) for version in versions}
    assert differs(alone[0], alone[VERSIONS])
    fans = [
        learner.model.fanout(token_ids=learner.prompt, sampling=spread, adapter=version)
        for version in versions
    ]
    while any(fan.indices for fan in fans):
        learner.model.step()
    for version, fan in zip(versions, fans, strict=True):
        same(sorted(fan.take(), key=lambda child: child.index), alone[version])


def test_what_is_under_way_ends_on_the_version_it_began_with(learner: Learner) -> None:
    each = [sampling(seed, max_tokens=16) for seed in range(3)]
    alone = learner.ask(1, *each)
    fan = learner.model.fanout(token_ids=learner.prompt, sampling=each, adapter=1)
    for version in (2, 3, 4):
        learner.model.step()
        learner.model.adopt(version, learner.folders[version])
        later = learner.model.fanout(
            token_ids=learner.prompt, sampling=[sampling(max_tokens=2)], adapter=version
        )
        learner.model.step()
        later.close()
    same(sorted(fan, key=lambda child: child.index), alone)


def test_only_a_full_adapter_has_keys_and_values_of_its_own(learner: Learner) -> None:
    learner.model.forget()
    learner.model.adopt(2, learner.folders[2])
    cached = []
    for version in (0, 1, 2, 1, 0):
        (child,) = learner.ask(version, sampling())
        cached.append(child.cached_prompt_tokens)
    most = len(learner.prompt) // learner.model.block_size * learner.model.block_size
    own = 0 if learner.kind == "full" else most
    assert cached == [0, own, own, most, most]


def test_no_hit_is_stale(learner: Learner) -> None:
    """After a swap, with the cache as it is, the answers are those of a cold engine."""
    one = [sampling(seed) for seed in range(3)]
    learner.model.forget()
    warm = {version: learner.ask(version, *one) for version in (0, 1, 2, 0)}
    for version, children in warm.items():
        learner.model.forget()
        same(learner.ask(version, *one), children)


@pytest.mark.slow
def test_after_an_error_the_engine_has_its_adapters_again(
    learner: Learner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    learner.model.forget()
    whole = [learner.ask(version, sampling(7)) for version in (0, 1, 2)]
    steady = SteadyModel(learner.model)
    gone = tmp_path / "gone"
    gone.symlink_to(learner.folders[3], target_is_directory=True)
    for version in (1, 2):
        steady.adopt(version, learner.folders[version])
    steady.adopt(9, gone)
    gone.unlink()  # as a run removes a checkpoint that no call needs any more
    learner.model.forget()
    faults = inject(monkeypatch, at(3))
    for version, before in enumerate(whole):
        call = steady.fanout(token_ids=learner.prompt, sampling=[sampling(7)], adapter=version)
        while call.indices:
            steady.step()
        same(call.take(), before)
    assert faults.failed == 1


@pytest.mark.slow
def test_an_engine_that_fails_on_a_new_version_is_loaded_again_with_it(
    learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner.model.forget()
    before = learner.ask(1, sampling(7))
    steady, own, failed = SteadyModel(learner.model), learner.model.adopt, []

    def adopt(version: int, folder: Path) -> None:
        if not failed:
            failed.append(version)
            raise torch.AcceleratorError("CUDA error: an illegal memory access")
        own(version, folder)

    monkeypatch.setattr(learner.model, "adopt", adopt)
    steady.adopt(1, learner.folders[1])
    call = steady.fanout(token_ids=learner.prompt, sampling=[sampling(7)], adapter=1)
    while call.indices:
        steady.step()
    same(call.take(), before)
    assert failed == [1]
    own(2, learner.folders[2])  # as the other tests have it


def test_an_error_of_the_device_is_no_damage_of_the_file(
    learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise torch.AcceleratorError("CUDA error: an illegal memory access")

    monkeypatch.setattr("engine.inference.adapters.safe_open", fail)
    with pytest.raises(torch.AcceleratorError):
        learner.model.adopt(94, learner.folders[1])


def test_what_is_no_adapter_of_this_engine_is_refused(learner: Learner, tmp_path: Path) -> None:
    model, (other,) = learner.model, {*ADAPTERS} - {learner.kind}
    with pytest.raises(ValueError, match=r"nowhere can't be loaded"):
        model.adopt(90, tmp_path / "nowhere")
    with pytest.raises(ValueError, match="version 1 of the adapter is taken"):
        model.adopt(1, tmp_path)
    with pytest.raises(ValueError, match="version 91 of the adapter was not loaded"):
        model.fanout(token_ids=[1], sampling=[sampling()], adapter=91)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "adapter_model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ValueError, match="damaged can't be loaded"):
        model.adopt(92, tmp_path / "damaged")
    if other == "full":
        weights = find_weights(config.resolve(["model=smollm2"]).model)
        random_adapter(weights, tmp_path / "other", kind=other, seed=0)
        with pytest.raises(ValueError, match=r"which learning\.adapter=last_block does not adapt"):
            model.adopt(93, tmp_path / "other")
    same(learner.ask(1, sampling()), learner.ask(1, sampling()))  # and all goes on


def test_weights_that_vllm_has_no_layer_for_are_refused(learner: Learner, tmp_path: Path) -> None:
    """They are named as those of a model that takes images; vLLM looks at the ends of names."""
    model, file = learner.model, "adapter_model.safetensors"
    shutil.copytree(learner.folders[1], folder := tmp_path / "elsewhere")
    weights = load_file(folder / file)
    named = {
        name.replace(".layers.", ".language_model.layers."): each for name, each in weights.items()
    }
    save_file(named, folder / file, metadata={"format": "pt"})
    reason = r"elsewhere can't be loaded: vLLM has no layer model\.language_model\.layers\.\d+\."
    with pytest.raises(ValueError, match=reason):
        model.adopt(94, folder)
    model.adopt(94, learner.folders[2])  # its place is free
    same(learner.ask(94, sampling()), learner.ask(2, sampling()))


# Rows of a step.


def test_a_row_without_an_adapter_is_left_alone() -> None:
    """vLLM's own class gives it the last slot's (its pull request 48421)."""
    prepare(threads=1, kv_cache_gb=1)
    from vllm.lora.layers import LoRAMapping
    from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU

    from engine.inference.adapter_rows import AdapterRows

    ids = (7, 7, 0, 0, 9, 7, 0)
    slots = {7: 0, 9: 1}
    a = tuple(torch.randn(2, 1, 4, 6) for _ in range(2))
    b = tuple(torch.randn(2, 1, width, 4) for width in (3, 5))
    x, before = torch.randn(len(ids), 6), torch.randn(len(ids), 8)
    expected = before.clone()
    for row, each in enumerate(ids):
        if each:
            added = [b[part][slots[each], 0] @ a[part][slots[each], 0] @ x[row] for part in (0, 1)]
            expected[row] += torch.cat(added)

    def result(kind: Any) -> torch.Tensor:
        wrapper, y = kind(16, max_batches=8, device="cpu"), before.clone()
        wrapper.update_metadata(LoRAMapping(ids, ids, is_prefill=True), [7, 9], 3, 100)
        wrapper.add_lora_linear(y, x, a, b, 1.0, (3, 5))
        return y

    torch.testing.assert_close(result(AdapterRows), expected)
    has_none = torch.tensor([each == 0 for each in ids])
    theirs = result(PunicaWrapperCPU)
    torch.testing.assert_close(theirs[~has_none], expected[~has_none])
    assert not torch.isclose(theirs[has_none], expected[has_none]).any()


# Settings.


@pytest.fixture
def learning() -> LearningSettings:
    return config.resolve(["model=smollm2", "learning=grpo"]).learning


@pytest.mark.parametrize(
    ("kind", "adapted"),
    [
        ("last_block", ["model.layers.29.self_attn.qkv_proj", "model.layers.29.self_attn.o_proj"]),
        ("last_block", ["model.layers.29.mlp.gate_up_proj", "model.layers.29.mlp.down_proj"]),
        ("full", ["model.layers.3.self_attn.qkv_proj", "model.layers.3.self_attn.o_proj"]),
    ],
)
def test_a_model_with_experts_or_states_there_is_refused(
    settings: ModelSettings, learning: LearningSettings, kind: Any, adapted: list[str]
) -> None:
    engine = SimpleNamespace(collective_rpc=lambda function: [adapted])
    with pytest.raises(UserError, match=rf"learning.adapter={kind} does not fit .* no "):
        Adapters(engine, learning=replace(learning, adapter=kind), folder=find_weights(settings))


@pytest.mark.parametrize("key", OWNED)
def test_the_arguments_of_adapters_are_not_the_users(key: str) -> None:
    prepare(threads=1, kv_cache_gb=1)
    check_engine_options({key: None})
    with pytest.raises(UserError, match=rf"model.engine.{key} can't be given: the model learns"):
        check_engine_options({key: None}, learns=True)


@pytest.mark.parametrize(
    "options", [{"model.top_p": 0.9}, {"model.top_k": 20}, {"model.min_p": 0.1}]
)
def test_learning_needs_the_whole_distribution(options: Mapping[str, float]) -> None:
    given = [f"{key}={value}" for key, value in options.items()]
    config.resolve(["model=smollm2", *given])
    with pytest.raises(UserError, match=r"it must be [01] while the model learns"):
        config.resolve(["model=smollm2", "learning=grpo", *given])
    config.resolve(["model=smollm2", "learning=grpo", "model.top_p=null", "model.top_k=null"])

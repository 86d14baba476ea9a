"""Packed computation against each sequence by itself."""

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import config
from engine.core import UserError
from engine.inference import find_weights
from engine.learning.network import Network, Prepared
from engine.learning.packing import Tokens, pack, split, split_padded
from engine.settings import LearningSettings

Settings = Callable[..., LearningSettings]


def tokens(count: int, *, seed: int) -> Tokens:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(0, 256, (count,), generator=generator).tolist())


TASK = tokens(20, seed=0)
PARENT = TASK + tokens(10, seed=1)
SEQUENCES = [
    (PARENT, (1, 2, 3)),
    (PARENT, (1, 2, 4, 5)),
    (PARENT, (1, 2, 3)),  # an equal sibling
    (TASK + tokens(5, seed=2), (7,)),  # predicted at the prompt's end alone
    (TASK + tokens(5, seed=2), (9, 8)),
    ((*PARENT, 3, 1), tokens(6, seed=3)),  # a prompt that goes on where another ends
    (tokens(4, seed=9), tokens(3, seed=4)),  # nothing in common
]


def gradients(network: Network, prepared: Prepared) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return the states that predict tokens, and the gradient of a weighted sum of them."""
    for parameter in network.parameters:
        parameter.grad = None
    states = network.states(prepared)
    found = torch.cat([states[places] for places in prepared.places])
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(5))
    (found * weights).sum().backward()
    return found.detach(), [parameter.grad.clone() for parameter in network.parameters]


def difference(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> float:
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(one, other, strict=True))


def check(
    weights: Path, settings: LearningSettings, sequences: list[tuple[Tokens, Tokens]]
) -> None:
    network = Network(weights=weights, settings=settings, seed=0, device="cpu", dtype=torch.float32)
    assert network.is_packed
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for parameter in network.parameters:  # a new adapter's gradient is 0 in one half
            parameter.normal_(0, 0.05, generator=generator)
    prepared = network.prepare(sequences)
    packed = gradients(network, prepared)
    cut = network.join([network.cut(prepared, index) for index in range(len(sequences))])
    joined = gradients(network, cut)
    network.is_packed = False
    alone = gradients(network, network.prepare(sequences))
    for found in (packed, joined):
        assert difference([found[0]], [alone[0]]) < 1e-4
        assert difference(found[1], alone[1]) < 1e-4


@pytest.mark.parametrize("adapter", ["last_block", "full"])
def test_gradients_are_those_of_every_sequence_by_itself(
    tiny: Path, learning: Settings, adapter: str
) -> None:
    check(tiny, learning(adapter=adapter), SEQUENCES)


@pytest.mark.parametrize("adapter", ["last_block", "full"])
def test_gradients_of_the_embedded_model(learning: Settings, adapter: str) -> None:
    check(
        find_weights(config.resolve([]).model),
        learning(adapter=adapter),
        [(prompt, answer) for prompt, answer in SEQUENCES[:5]],
    )


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("mistral", {"sliding_window": 64}),
        ("qwen3_5_text", {"linear_num_key_heads": 2, "linear_num_value_heads": 4}),
        ("granite", {"embedding_multiplier": 3.0}),
    ],
)
def test_other_models_take_each_sequence_by_itself(
    learning: Settings, tmp_path: Path, kind: str, more: dict[str, Any]
) -> None:
    save(tmp_path, kind, more)
    network = Network(
        weights=tmp_path, settings=learning(), seed=0, device="cpu", dtype=torch.float32
    )
    assert not network.is_packed
    together = network.prepare(SEQUENCES)
    states = network.states(together)
    for sequence, places in zip(SEQUENCES, together.places, strict=True):
        alone = network.prepare([sequence])
        expected = network.states(alone)[alone.places[0]]
        assert difference([states[places].detach()], [expected.detach()]) < 1e-4


def test_a_head_that_does_more_is_refused(learning: Settings, tmp_path: Path) -> None:
    save(tmp_path, "granite", {"logits_scaling": 4.0})
    with pytest.raises(UserError, match="scales, bounds or shifts its logits"):
        Network(weights=tmp_path, settings=learning(), seed=0, device="cpu", dtype=torch.float32)


def save(folder: Path, kind: str, more: dict[str, Any]) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    shape = {
        "vocab_size": 257,
        "hidden_size": 96,
        "intermediate_size": 128,
        "num_hidden_layers": 4,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "initializer_range": 0.2,
    }
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **shape, **more)).save_pretrained(
        folder
    )


def test_shared_tokens_stand_once() -> None:
    packed = pack(SEQUENCES)
    prompts = 20 + 10 + 5 + 2 + 4
    answers = 3 + 0 + 1 + 5 + 2  # what predicts nothing is left out, and 1, 2 is shared
    assert len(packed.ids) == prompts + answers
    assert packed.positions.max() == 20 + 10 + 2 + 5 - 1
    assert torch.equal(packed.places[0], packed.places[2])
    assert packed.places[3].tolist() == packed.places[4][:1].tolist()


def test_each_token_sees_its_own_past() -> None:
    packed = pack(SEQUENCES)
    asked = [(window, row) for window in packed.asked for row in range(len(window.rows))]
    for (prompt, answer), places in zip(SEQUENCES, packed.places, strict=True):
        for step, place in enumerate(places.tolist()):
            window, row = asked[place]
            seen = window.keys[window.sight.mask[row]]
            assert tuple(packed.ids[seen].tolist()) == prompt + answer[:step]
            assert packed.positions[seen].tolist() == list(range(len(prompt) + step))


def test_what_is_kept_of_a_pack_grows_with_its_tokens_and_not_with_their_square() -> None:
    packed = pack([(PARENT, tokens(50, seed=index)) for index in range(64)])
    assert len(packed.ids) > 3000
    assert len(pickle.dumps(packed)) < 200 * len(packed.ids)


def test_packs_are_bounded_and_keep_siblings_together() -> None:
    parts = list(split(SEQUENCES, most_tokens=45))
    assert sorted(index for part in parts for index in part) == list(range(len(SEQUENCES)))
    assert any({0, 1, 2} <= set(part) for part in parts)
    assert len(parts) > 1


def test_what_is_not_packed_counts_as_padded() -> None:
    lengths = [5100, 1250, 1250, 1250, 40, 8000]
    sequences = [(tokens(length - 3, seed=length), (1, 2, 3)) for length in lengths]
    parts = list(split_padded(sequences, most_tokens=6000))
    assert parts == [(4, 1, 2, 3), (0,), (5,)]
    assert [len(part) for part in split_padded(SEQUENCES, most_tokens=1)] == [1] * len(SEQUENCES)
    assert list(split_padded([], most_tokens=1)) == []


def test_siblings_for_which_a_pack_has_no_room_are_split() -> None:
    many = [(PARENT, tokens(5 + index % 3, seed=index)) for index in range(64)]
    many[9] = (PARENT, tokens(90, seed=9))
    parts = list(split(many, most_tokens=80))
    assert [index for part in parts for index in part] == list(range(64))
    assert (9,) in parts
    counts = [len(PARENT) + sum(len(many[index][1]) for index in part) for part in parts]
    assert all(count <= 80 or len(part) == 1 for count, part in zip(counts, parts, strict=True))
    assert len(parts) < 16


@pytest.mark.parametrize("adapter", ["last_block", "full"])
def test_blocks_that_are_computed_again_on_the_way_back_change_no_gradient(
    learning: Settings, tmp_path: Path, adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, "qwen3_5_text", {"linear_num_key_heads": 2, "linear_num_value_heads": 4})
    network = Network(
        weights=tmp_path,
        settings=learning(adapter=adapter),
        seed=0,
        device="cpu",
        dtype=torch.float32,
    )
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for parameter in network.parameters:  # a new adapter's gradient is 0 in one half
            parameter.normal_(0, 0.05, generator=generator)
    calls: list[Any] = []

    def keeping(block: Callable[..., Any], *args: Any, use_reentrant: bool, **more: Any) -> Any:
        calls.append(block)
        return block(*args, **more)

    prepared = network.prepare(SEQUENCES)
    again = gradients(network, prepared)
    monkeypatch.setattr("engine.learning.network.checkpoint", keeping)
    kept = gradients(network, prepared)
    assert len(calls) == 4  # the blocks, once each
    assert difference([again[0]], [kept[0]]) < 1e-5
    assert difference(again[1], kept[1]) < 1e-5

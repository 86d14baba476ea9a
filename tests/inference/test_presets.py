"""The presets for GPUs: what vLLM makes of them on faked cards, what has room, and what is cached.

The models' folders under ``data/`` hold a ``config.json`` and no weights.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from faked_card import CARDS, GIB, resolved
from simulated import SimulatedEngine, full_attention, hybrid

from engine import config
from engine.cluster.islands import check_cluster
from engine.core import UserError
from engine.inference import find_weights, prepare
from engine.inference.block_hashes import hash_block_size
from engine.inference.limits import EngineLimits, gpu_limits
from engine.inference.memory_plan import plan_memory
from engine.inference.shape import ModelShape, read_shape

DATA = Path(__file__).parent / "data"
PRESETS = ("qwen3_coder_30b", "qwen3_6_27b", "qwen3_6_35b_a3b", "qwen3_5_4b")
HYBRIDS = PRESETS[1:]
SHAPES = {  # layers with KV and with states, KV of a token in a layer, state of a layer
    "qwen3_coder_30b": (48, 0, 2 * 2 * 4 * 128, 0),
    "qwen3_6_27b": (16, 48, 2 * 2 * 4 * 256, 2 * 3 * 10240 + 4 * 48 * 128 * 128),
    "qwen3_6_35b_a3b": (10, 30, 2 * 2 * 2 * 256, 2 * 3 * 8192 + 4 * 32 * 128 * 128),
    "qwen3_5_4b": (8, 24, 2 * 2 * 4 * 256, 2 * 3 * 8192 + 4 * 32 * 128 * 128),
    "llama_like": (32, 0, 2 * 2 * 8 * 128, 0),
}
BILLIONS = {"qwen3_coder_30b": 30.5, "qwen3_6_27b": 26.9, "qwen3_6_35b_a3b": 34.7}
K, ISLANDS, CALLS = 8, 4, 100
LEAST_CACHED = {
    "qwen3_coder_30b": 0.97,
    "qwen3_6_27b": 0.96,
    "qwen3_6_35b_a3b": 0.96,
    "qwen3_5_4b": 0.96,
}
SPLIT = "model=qwen3_coder_30b cluster=split cache=lmcache"
BY_PATH = ("qwen3_6_27b", "llama_like")
MadeOf = Mapping[tuple[str, str], SimpleNamespace]
"""What vLLM makes of a preset on a card."""


@pytest.fixture(scope="module")
def made_of() -> MadeOf:
    pairs = [(name, card) for name in PRESETS for card in CARDS]
    jobs = [(card, DATA / name, f"model={name}") for name, card in pairs]
    for name in BY_PATH:
        pairs.append((f"path of {name}", "H100"))
        jobs.append(("H100", DATA / name, f"model.path={DATA / name}"))
    pairs.append(("split", "H100"))
    jobs.append(("H100", DATA / "qwen3_coder_30b", SPLIT))
    pairs.append(("smollm2", "H100"))
    jobs.append(("H100", find_weights(config.resolve([]).model), "model=smollm2"))
    return dict(zip(pairs, resolved(jobs), strict=True))


@pytest.fixture(scope="module")
def learning() -> list[SimpleNamespace]:
    """The embedded model where it learns: beside a trainer, without room, in another format."""
    chosen = "model=smollm2 learning=grpo learning.adapter=full learning.memory_gb"
    folder = find_weights(config.resolve([]).model)
    given = (f"{chosen}=8", f"{chosen}=79", f"{chosen}=8 model.dtype=float32")
    return resolved([("H100", folder, each) for each in given])


def test_the_trainer_has_its_own_share_of_the_gpu(
    made_of: MadeOf, learning: list[SimpleNamespace]
) -> None:
    alone, beside = made_of["smollm2", "H100"], learning[0]
    assert alone.adapters is None
    assert beside.adapters == ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]
    assert beside.logprobs == "processed_logprobs"
    assert beside.memory_share == pytest.approx(alone.memory_share - 8 / 79)
    assert alone.plan["usable"] - beside.plan["usable"] == pytest.approx(8 * GIB, rel=1e-6)


def test_a_trainer_that_takes_all_of_it_is_refused(learning: list[SimpleNamespace]) -> None:
    assert learning[1].refused == (
        "learning.memory_gb=79 leaves nothing for the model of the 50% of the GPU's 79 GiB that "
        "model.gpu_memory_utilization gives; lower it"
    )


def test_numbers_that_no_adapter_takes_on_a_gpu_are_refused(
    learning: list[SimpleNamespace],
) -> None:
    assert learning[2].refused.startswith(
        "model.dtype=float32 leaves no room for learning on a GPU"
    )


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_read_from_a_configuration(name: str) -> None:
    shape = read_shape(DATA / name)
    assert SHAPES[name] == (
        shape.attention_layers,
        shape.state_layers,
        shape.kv_of_layer,
        shape.state_of_layer,
    )
    assert shape.takes_images == shape.is_hybrid == (name in HYBRIDS)


@pytest.mark.parametrize("name", BILLIONS)
def test_weights_in_fp8_are_a_byte_a_parameter_and_vocabularies_two(name: str) -> None:
    # As published, the parameters of the language model alone.
    weights = read_shape(DATA / name).weights / 1e9
    assert BILLIONS[name] < weights < BILLIONS[name] * 1.1


def test_weights_in_bf16_are_two_bytes_a_parameter_and_a_tied_vocabulary_counts_once() -> None:
    # 4.54 billion as published, a vision tower of 0.33 billion among them.
    assert 4.1 < read_shape(DATA / "qwen3_5_4b").weights / 2e9 < 4.3


def test_weights_that_are_there_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((DATA / "llama_like/config.json").read_bytes())
    for number in range(3):
        (tmp_path / f"{number}.safetensors").write_bytes(bytes(1000 + number))
    (tmp_path / "consolidated.safetensors").write_bytes(bytes(3003))  # the same once more
    assert read_shape(tmp_path).weights == 3003


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"num_hidden_layers": "many"}', "\xff"])
def test_a_configuration_that_is_none_is_refused_in_a_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    with pytest.raises(UserError, match=r"config\.json can't be read") as refused:
        read_shape(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_resolves_on_a_faked_card(made_of: MadeOf, name: str, card: str) -> None:
    made = made_of[name, card]
    shape = read_shape(DATA / name)
    assert made.device == "cuda"
    assert made.max_num_batched_tokens == 8192
    assert made.max_model_len == 32768
    assert made.memory_share == 0.9
    assert made.chunked_prefill and made.async_scheduling and made.prefix_caching
    assert made.full_graphs
    assert made.largest_graph >= made.max_num_seqs
    # What is read from config.json is what vLLM makes of it.
    assert made.is_hybrid == shape.is_hybrid
    assert made.language_model_only == made.takes_images == shape.takes_images
    assert (made.kv_of_layer, made.attention_layers) == (shape.kv_of_layer, shape.attention_layers)
    if shape.is_hybrid:
        assert made.aligned_block == shape.aligned_block
        assert made.state_mode == "align"
        assert made.prefix_match_unit == 16
        assert made.aligned_block % made.prefix_match_unit == 0
    else:
        assert made.block_size == 64


def test_a_model_by_path_gets_what_its_preset_would_have(made_of: MadeOf) -> None:
    derived, preset = made_of["path of qwen3_6_27b", "H100"], made_of["qwen3_6_27b", "H100"]
    assert {**vars(derived), "chunk": ""} == {**vars(preset), "chunk": ""}
    llama = made_of["path of llama_like", "H100"]
    assert (llama.block_size, llama.max_num_seqs, llama.max_model_len) == (64, 256, 32768)
    assert (llama.prefix_match_unit, llama.language_model_only) == (None, False)
    assert (llama.kv_of_layer, llama.attention_layers) == (4096, 32)


def test_the_default_model_resolves_too(made_of: MadeOf) -> None:
    made = made_of["smollm2", "H100"]
    assert (made.device, made.block_size, made.max_num_seqs) == ("cuda", 64, 256)
    assert made.max_num_batched_tokens >= made.max_model_len
    assert made.plan["tokens"] > 256 * made.max_model_len


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_fits_its_memory_plan(made_of: MadeOf, name: str, card: str) -> None:
    made = made_of[name, card]
    plan = made.plan
    shape = read_shape(DATA / name)
    assert plan["weights"] + plan["cache"] + 4 * GIB == plan["usable"]
    # A prompt of 8k for each island, and 1,024 tokens of an answer for each request at once.
    assert plan["tokens"] >= ISLANDS * 8192 + plan["sequences"] * 1024
    assert plan["tokens"] >= made.max_model_len
    block = shape.aligned_block or 64
    assert plan["state"] == plan["sequences"] * shape.state_layers * 2 * block * shape.kv_of_layer
    assert plan["tokens"] * shape.kv_per_token + plan["state"] <= plan["cache"]
    assert f"weights {plan['weights'] / GIB:.1f} GiB" in made.plan_line
    assert f"of the GPU's {CARDS[card][1] // GIB}.0 GiB" in made.plan_line
    assert ("state" in made.plan_line) == shape.is_hybrid


def test_the_preset_that_learns_has_room_beside_its_trainer() -> None:
    whole = ["model.top_p=1", "model.top_k=0"]
    settings = config.resolve(["model=qwen3_5_4b", "learning=grpo", *whole])
    shape, sequences = read_shape(DATA / "qwen3_5_4b"), settings.model.max_num_seqs or 0
    for _, memory in CARDS.values():
        share = settings.model.gpu_memory_utilization - settings.learning.memory_gb * GIB / memory
        plan = plan_memory(shape, memory=memory, share=share, sequences=sequences, block_size=None)
        assert plan.tokens >= ISLANDS * 8192 + sequences * 1024


@pytest.mark.parametrize("name", PRESETS)
def test_siblings_find_their_prompt_in_the_cache(name: str, tmp_path: Path) -> None:
    """The search's load on vLLM's own scheduler, with as many blocks as the plan has."""
    shape, memory = read_shape(DATA / name), CARDS["H100"][1]
    limits = gpu_limits(config.resolve([f"model={name}"]).model, shape, memory=memory)
    cached, prompts, preempted = _search(_engine(name, limits, folder=tmp_path))
    assert 8000 < prompts / (CALLS * K) < 9000
    assert not preempted
    assert cached / prompts >= LEAST_CACHED[name]


@pytest.mark.parametrize("name", HYBRIDS)
def test_a_hybrid_loses_hits_where_only_whole_blocks_are_found(name: str, tmp_path: Path) -> None:
    shape, memory = read_shape(DATA / name), CARDS["H100"][1]
    limits = gpu_limits(config.resolve([f"model={name}"]).model, shape, memory=memory)
    limits = replace(limits, prefix_match_unit=None)
    cached, prompts, _ = _search(_engine(name, limits, folder=tmp_path))
    assert cached / prompts < LEAST_CACHED[name] - 0.02  # the smaller its blocks, the less


def test_a_hybrid_finds_prompts_in_steps_of_what_is_hashed(tmp_path: Path) -> None:
    """Why their tokens are computed is told by these, and not by its blocks."""
    shape, memory = read_shape(DATA / "qwen3_5_4b"), CARDS["H100"][1]
    limits = gpu_limits(config.resolve(["model=qwen3_5_4b"]).model, shape, memory=memory)
    engine = _engine("qwen3_5_4b", limits, folder=tmp_path)
    size = hash_block_size(SimpleNamespace(engine_core=SimpleNamespace(engine_core=engine)))
    block = shape.aligned_block or 0
    assert size == 16 < block
    prompt, cached = engine.tokens(1000), dict[str, int]()
    for name in ("first", "again"):
        engine.add(name, prompt, max_tokens=4)
        while engine.unfinished:
            cached |= engine.step().cached
    assert cached["again"] > block
    assert cached["again"] % size == 0 < cached["again"] % block


def _engine(name: str, limits: EngineLimits, *, folder: Path) -> SimulatedEngine:
    """Return a simulated engine with the blocks that an H100 has room for."""
    prepare(threads=1, kv_cache_gb=1)
    shape, memory = read_shape(DATA / name), CARDS["H100"][1]
    plan = plan_memory(
        shape, memory=memory, share=0.9, sequences=limits.max_num_seqs, block_size=limits.block_size
    )
    block_size = limits.block_size or shape.aligned_block or 0
    layout = full_attention(block_size=block_size)
    if shape.is_hybrid:
        layout = hybrid(
            block_size=block_size,
            match_unit=limits.prefix_match_unit,
            layers=shape.attention_layers,
            kv_heads=shape.kv_of_layer // 1024,
            state_shapes=_state_shapes(name),
        )
    return SimulatedEngine(
        folder=folder,
        layout=layout,
        blocks=plan.cache // (shape.kv_per_token * block_size),
        max_num_seqs=limits.max_num_seqs,
        max_num_batched_tokens=limits.max_num_batched_tokens,
    )


def _state_shapes(name: str) -> tuple[tuple[int, ...], ...]:
    heads, channels = (48, 10240) if name == "qwen3_6_27b" else (32, 8192)
    return (3, channels), (heads, 128, 128)


def _search(engine: SimulatedEngine) -> tuple[int, int, int]:
    """Run calls of islands, whose prompts share task and history and differ in the parent.

    Returns:
        Prompt tokens that were cached, prompt tokens, and how often a request was preempted.
    """
    rng = random.Random(0)
    task, ask = engine.tokens(1000), engine.tokens(150)
    history = [[engine.tokens(900) for _ in range(2)] for _ in range(ISLANDS)]
    parents = [[engine.tokens(1400) for _ in range(3)] for _ in range(ISLANDS)]
    left, sizes = dict.fromkeys(range(ISLANDS), 0), {}
    cached = preempted = calls = 0

    def begin(island: int) -> None:
        nonlocal calls
        if rng.random() < 0.35:
            history[island].append(engine.tokens(900))
        if sum(map(len, history[island])) > 12_288:  # a compaction, as in the presets
            while sum(map(len, history[island])) > 8192:
                del history[island][0]
        if rng.random() < 0.5:
            parents[island].append(engine.tokens(1400))
        shown = [token for program in history[island] for token in program]
        prompt = [*task, *shown, *rng.choice(parents[island][-4:]), *ask]
        for child in range(K):
            sizes[f"{island}.{calls}.{child}"] = len(prompt)
            engine.add(f"{island}.{calls}.{child}", prompt, max_tokens=12 + rng.randrange(12))
        left[island], calls = K, calls + 1

    for island in range(ISLANDS):
        begin(island)
    while engine.unfinished:
        step = engine.step()
        cached += sum(step.cached.values())
        preempted += len(step.preempted)
        for request in step.finished:
            island = int(request.partition(".")[0])
            left[island] -= 1
            if not left[island] and calls < CALLS:
                begin(island)
    return cached, sum(sizes.values()), preempted


def test_a_hybrid_of_another_size_gets_as_many_sequences_as_its_states_leave_room_for() -> None:
    settings = config.resolve(["model=qwen3_6_27b", "model.max_num_seqs=null"]).model
    shape = read_shape(DATA / "qwen3_6_27b")
    on = {card: gpu_limits(settings, shape, memory=memory) for card, (_, memory) in CARDS.items()}
    assert {card: each.max_num_seqs for card, each in on.items()} == {"H100": 64, "H200": 128}
    tiny = gpu_limits(settings, shape, memory=10 * GIB)  # which the weights alone exceed
    assert tiny.max_num_seqs == 1


def test_what_is_given_takes_the_place_of_what_is_derived() -> None:
    arguments = ["model=qwen3_coder_30b", "model.max_num_seqs=8", "model.block_size=16"]
    settings = config.resolve([*arguments, "model.max_num_batched_tokens=2048"]).model
    limits = gpu_limits(settings, read_shape(DATA / "qwen3_coder_30b"), memory=80 * GIB)
    assert (limits.max_num_seqs, limits.block_size, limits.max_num_batched_tokens) == (8, 16, 2048)


def test_a_hybrid_of_an_unknown_kind_gets_no_plan_for_its_states() -> None:
    shape = ModelShape(
        weights=GIB,
        attention_layers=4,
        kv_of_layer=1024,
        kv_heads=2,
        state_layers=12,
        state_of_layer=None,
        takes_images=False,
    )
    limits = gpu_limits(config.resolve([]).model, shape, memory=80 * GIB)
    assert (limits.max_num_seqs, limits.block_size, limits.prefix_match_unit) == (256, None, 16)


def test_prefill_and_decode_apart_are_engines_that_load_and_store_alike(made_of: MadeOf) -> None:
    settings = config.resolve(SPLIT.split())
    check_cluster(settings)
    cluster = settings.cluster
    assert (cluster.kind, cluster.gpus, cluster.workers, cluster.prefillers) == ("ray", 1, 3, 1)
    split, alone = made_of["split", "H100"], made_of["qwen3_coder_30b", "H100"]
    assert (split.kv_role, split.kv_connector) == ("kv_both", "KVConnector")
    assert alone.kv_role is None
    # A chunk that a prefiller stores is whole blocks of a worker, and nothing else is given up.
    assert split.chunk % split.block_size == 0
    assert split.prefix_caching and split.chunked_prefill and split.full_graphs
    for name in ("max_num_seqs", "max_num_batched_tokens", "block_size", "async_scheduling"):
        assert getattr(split, name) == getattr(alone, name)


def test_lmcache_chunks_fit_the_blocks_and_hybrids_are_refused(made_of: MadeOf) -> None:
    made = made_of["qwen3_coder_30b", "H100"]
    assert made.chunk % made.block_size == 0 and made.chunk >= 256
    for name in HYBRIDS:
        refused = str(made_of[name, "H100"].chunk)
        assert refused.startswith(f"cache=lmcache can't keep the states of {name}")

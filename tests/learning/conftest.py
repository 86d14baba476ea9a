"""A Llama of three blocks whose tokens are bytes, with weights by chance."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import config
from engine.core import SampledFrom
from engine.learning.group import Answer, Group, Member
from engine.settings import LearningSettings


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder; token 256 ends an answer."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: index for index, letter in enumerate(alphabet)} | {"<end>": 256}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=257,
        hidden_size=96,
        intermediate_size=128,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        initializer_range=0.2,
        eos_token_id=256,
        bos_token_id=256,
    )
    LlamaForCausalLM(shape).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def learning() -> Callable[..., LearningSettings]:
    """Settings of learning, with changes."""
    default = config.resolve(["learning=mean_baseline"]).learning

    def made(**changes: Any) -> LearningSettings:
        return replace(default, rank=8, **changes)

    return made


@pytest.fixture(scope="session")
def encode(tiny: Path) -> Callable[[str], tuple[int, ...]]:
    """The tokens of a text."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    return lambda text: tuple(tokenizer.encode(text))


@pytest.fixture(scope="session")
def answered(encode: Callable[[str], tuple[int, ...]]) -> Callable[..., Answer]:
    """An answer to a prompt, both as text."""

    def made(prompt: str, text: str, *, temperature: float = 1.0, **source: Any) -> Answer:
        return Answer(
            sampled_from=SampledFrom(prompt_ids=encode(prompt), **source),
            temperature=temperature,
            token_ids=encode(text),
            logprobs=(),
        )

    return made


@pytest.fixture(scope="session")
def group_of(answered: Callable[..., Answer]) -> Callable[..., Group]:
    """A group: a prompt, and its answers with their rewards; those above 0 are new and valid."""

    def made(prompt: str, rewards: dict[str, float], *, adapter: int = 0, **source: Any) -> Group:
        members = tuple(
            Member(
                answers=(answered(prompt, text, **source),),
                reward=reward,
                key=prompt + text,
                is_new=reward > 0,
                gain=reward,
            )
            for text, reward in rewards.items()
        )
        return Group(iteration=1, adapter=adapter, members=members)

    return made

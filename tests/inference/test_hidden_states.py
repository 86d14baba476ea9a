"""Mean hidden states: the real engine against transformers on the same weights, while it decodes.

The embedded model on a CPU computes each prompt in one step. How rows are told apart where a
prefill is split or starts again is tested on a stand-in for vLLM's runners, which hold what those
of vLLM 0.32 hold.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engine.core import Generation
from engine.inference import (
    Decoder,
    DecoderEmbedder,
    LanguageModel,
    ModelEmbedder,
    Sampling,
    find_weights,
)
from engine.inference.hidden_states import mean_hidden_states
from engine.problem import shipped
from engine.settings import ModelSettings
from engine.timeline import Timeline
from engine.timeline_file import TIMELINE
from kernels.cosine import cosines

LENGTH = 1024
"""Of the model's context: shorter than one of the programs."""


@pytest.fixture(scope="module")
def programs() -> list[str]:
    """Four long ones and a short one."""
    texts = [(folder / "initial.py").read_text() for folder in shipped().values()]
    shortest, *_, fourth, third, second, longest = sorted(texts, key=len)
    return [shortest, 2 * longest, second, third, fourth]


@pytest.fixture(scope="module")
def expected(
    model: LanguageModel, settings: ModelSettings, programs: list[str]
) -> NDArray[np.float32]:
    """The same, by transformers in float32."""
    from transformers import AutoModelForCausalLM

    reference = AutoModelForCausalLM.from_pretrained(find_weights(settings), dtype=torch.float32)
    means = []
    with torch.no_grad():
        for program in programs:
            ids = torch.tensor([model.encode(program)[: LENGTH - 1]])
            means.append(reference.model(ids).last_hidden_state[0].mean(dim=0).numpy())
    return np.stack(means)


def alike(found: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    """Return the smallest cosine of two vectors in the same row."""
    assert found.shape == expected.shape
    return float(np.diag(cosines(found, expected)).min())


def sampling(seed: int, *, max_tokens: int, banned: tuple[int, ...]) -> Sampling:
    return Sampling(temperature=0.8, seed=seed, stop=(), max_tokens=max_tokens, banned=banned)


def test_the_vectors_are_those_of_transformers(
    model: LanguageModel, programs: list[str], expected: NDArray[np.float32]
) -> None:
    """More tokens than fit in one step, one program as long as the context, one empty."""
    assert sum(len(model.encode(program)) for program in programs) > 2048
    assert max(len(model.encode(program)) for program in programs) >= LENGTH - 10
    embedder = ModelEmbedder(model)
    found = embedder.embed([*programs, ""])
    assert found.shape == (len(programs) + 1, embedder.dimensions)
    assert found.dtype == np.float32
    assert alike(found[:-1], expected) > 0.9999
    np.testing.assert_allclose(np.linalg.norm(found[:-1], axis=1), 1, rtol=1e-6)
    assert not found[-1].any()


def test_what_the_prefix_cache_holds_is_computed_all_the_same(
    model: LanguageModel, programs: list[str], expected: NDArray[np.float32]
) -> None:
    ids = model.encode(programs[0])
    list(model.fanout(token_ids=ids, sampling=[sampling(0, max_tokens=2, banned=())]))
    assert model.cached_tokens(ids) > 0
    before = model.prefix_cache_count()
    (found,) = model.mean_hidden_states([ids])
    assert alike(found[None], expected[:1]) > 0.9999
    assert np.abs(found - expected[0]).max() < 0.2  # lengths too, not only directions
    assert model.prefix_cache_count() == before  # a run's figures do not see it


def test_calls_decode_meanwhile(
    model: LanguageModel, programs: list[str], expected: NDArray[np.float32]
) -> None:
    endless = tuple(model.encode("<|im_end|>") + model.encode("<|endoftext|>"))
    ids = model.encode(programs[4])  # the prompt is one of the texts, too
    lengths = [2, 40, 40]
    spread = [
        sampling(seed, max_tokens=length, banned=endless) for seed, length in enumerate(lengths)
    ]
    fan = model.fanout(token_ids=ids, sampling=spread)
    fan.step()
    waiting = model.fanout(token_ids=ids, sampling=spread[:1])  # joins in the same step
    found = ModelEmbedder(model).embed(programs)
    assert alike(found, expected) > 0.9999
    assert [child.index for child in fan.take()] == [0]  # it finished on the way
    children = sorted([*fan, *waiting], key=lambda child: child.generated_tokens)
    assert [child.generated_tokens for child in children] == [2, 40, 40]
    assert all(child.text for child in children)


def test_in_a_running_decoder_a_vector_is_what_it_is_alone(
    model: LanguageModel,
    programs: list[str],
    expected: NDArray[np.float32],
    tmp_path: Path,
) -> None:
    """Texts join calls that decode, all at once and then one by one, and no child is lost."""
    endless = tuple(model.encode("<|im_end|>") + model.encode("<|endoftext|>"))
    embedder, rung = ModelEmbedder(model), threading.Event()
    alone = embedder.embed(programs)
    finished: list[tuple[int, Generation]] = []
    with (
        Timeline(tmp_path / TIMELINE) as timeline,
        Decoder(model=model, timeline=timeline, notify=rung.set) as decoder,
    ):
        for call, length in ((1, 2), (2, 60), (3, 800)):
            decoder.submit(
                call,
                iteration=call,
                token_ids=model.encode(programs[0]),
                sampling=[sampling(seed, max_tokens=length, banned=endless) for seed in range(2)],
                is_over=lambda text: False,
            )
        beside = DecoderEmbedder(embedder, decoder)
        together = beside.embed(programs)
        one_by_one = np.concatenate([beside.embed([each]) for each in programs])
        while len(finished) < 4:
            assert rung.wait(60)
            rung.clear()
            finished += decoder.completed()
        assert decoder.in_flight == 2  # call 3 was there all the time
        again = beside.embed([*programs[:1], ""])
    for found in (together, one_by_one):
        assert alike(found, alone) > 0.9999
        assert alike(found, expected) > 0.9999
    assert alike(again[:1], alone[:1]) > 0.9999 and not again[1].any()
    lengths = sorted((call, child.generated_tokens) for call, child in finished)
    assert lengths == [(1, 2), (1, 2), (2, 60), (2, 60)]
    model.forget()  # no request holds any of the cache


def test_a_step_that_fails_leaves_the_engine_as_it_was(
    model: LanguageModel, programs: list[str], expected: NDArray[np.float32]
) -> None:
    engine = model._engine

    def fail() -> None:
        raise OSError("no step")

    prompts = {"a": model.encode(programs[0]), "b": model.encode(programs[1])[: LENGTH - 1]}
    with pytest.raises(OSError, match="no step"):
        mean_hidden_states(engine=engine, step=fail, prompts=prompts)
    assert not engine.has_unfinished_requests()
    runner = engine.engine_core.engine_core.model_executor.driver_worker.worker.model_runner
    assert "execute_model" not in vars(runner)
    assert alike(model.mean_hidden_states([prompts["b"]]), expected[1:2]) > 0.9999
    assert "execute_model" not in vars(runner)


def test_lengths_are_checked(model: LanguageModel) -> None:
    for prompts, lengths in (([], r"\[\]"), ([[1], []], r"\[1, 0\]"), ([[1] * LENGTH], "1024")):
        with pytest.raises(ValueError, match=f"expected prompts of 1 to 1023 tokens, .*{lengths}"):
            model.mean_hidden_states(prompts)


# Where a prefill is split or starts again.

HIDDEN = torch.arange(40, dtype=torch.float32).reshape(20, 2) ** 2
"""The hidden states of any text's tokens, by position."""
Step = dict[str, tuple[int, int]]
"""For each request in a step, its first position and the position behind its last."""


class StandIn:
    """An engine, and its runner, that computes what a list of steps says."""

    def __init__(self, steps: Sequence[Step | None], *, layout: str) -> None:
        self.steps = iter(steps)
        self.layout = layout
        self.execute_model_state: Any = None
        self.input_batch: Any = None
        self.query_start_loc: Any = None
        self.aborted: list[str] = []
        worker = SimpleNamespace(worker=SimpleNamespace(model_runner=self))
        executor = SimpleNamespace(driver_worker=worker)
        self.engine_core = SimpleNamespace(engine_core=SimpleNamespace(model_executor=executor))

    def add_request(self, name: str, prompt: Any, params: Any) -> str:
        assert (params.max_tokens, params.skip_reading_prefix_cache) == (1, True)
        return f"{name}-inside"

    def abort_request(self, names: list[str]) -> None:
        self.aborted += names

    def execute_model(self, step: Step | None) -> None:
        if step is None:
            self.execute_model_state = None
            return
        spans = list(step.values())
        starts = np.cumsum([0] + [end - first for first, end in spans])
        firsts = np.array([first for first, _ in spans])
        padding = torch.full((3, 2), torch.nan)
        rows = torch.cat([*(HIDDEN[first:end] for first, end in spans), padding])
        if self.layout == "new":
            batch = SimpleNamespace(
                req_ids=list(step), query_start_loc_np=starts, num_computed_tokens_np=firsts
            )
            self.execute_model_state = SimpleNamespace(hidden_states=rows, input_batch=batch)
        else:
            self.input_batch = SimpleNamespace(req_ids=list(step), num_computed_tokens_cpu=firsts)
            self.query_start_loc = SimpleNamespace(np=starts)
            self.execute_model_state = SimpleNamespace(hidden_states=rows)

    def step(self) -> None:
        # Looked up on the instance, as vLLM's worker does.
        self.execute_model(next(self.steps))
        if self.execute_model_state is not None:
            self.execute_model_state.hidden_states.fill_(torch.nan)  # the buffer is used again


@pytest.mark.parametrize("layout", ["old", "new"])
@pytest.mark.parametrize(
    "steps",
    [
        [{"a-inside": (0, 5), "b-inside": (0, 3)}],
        [{"x": (7, 8), "b-inside": (0, 3), "y": (2, 9), "a-inside": (0, 5)}],  # beside others
        [None, {"a-inside": (0, 2)}, {"x": (0, 1), "a-inside": (2, 5)}, {"b-inside": (0, 3)}],
        [{"a-inside": (0, 4), "b-inside": (0, 3)}, {"a-inside": (0, 5)}],  # preempted, once more
        [{"b-inside": (0, 3)}, {"b-inside": (3, 4), "a-inside": (0, 5)}],  # a token was sampled
    ],
)
def test_rows_are_told_apart_by_request_and_position(steps: list[Step | None], layout: str) -> None:
    engine = StandIn(steps, layout=layout)
    found = mean_hidden_states(
        engine=engine, step=engine.step, prompts={"a": [1] * 5, "b": [2] * 3}
    )
    np.testing.assert_allclose(found[0], HIDDEN[:5].mean(dim=0))
    np.testing.assert_allclose(found[1], HIDDEN[:3].mean(dim=0))
    assert next(engine.steps, None) is None  # no step too many
    assert engine.aborted == ["a", "b"]


@pytest.mark.parametrize("layout", ["old", "new"])
def test_rows_that_are_missing_are_an_error(layout: str) -> None:
    engine = StandIn([{"a-inside": (2, 5)}], layout=layout)
    with pytest.raises(RuntimeError, match="from position 0 on, but they began at 2"):
        mean_hidden_states(engine=engine, step=engine.step, prompts={"a": [1] * 5})
    assert engine.aborted == ["a"]

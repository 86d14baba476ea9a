"""The mutation model behind the face of a language model, and its operator."""

from __future__ import annotations

import inspect
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from inline import Inline
from responses import completion

from engine import config
from engine.core import Candidate, Generation, Prompt, Proposal, UserError
from engine.inference import Decoder, LanguageModel, Sampling
from engine.mutation import MutationModel, mutated
from engine.problem import load_problem, shipped
from engine.prompts.mutation import Mutation
from engine.timeline import Timeline

PROGRAM = "def f(x):\n    y = x * 2 + 3\n    return y\n"
SETTINGS = config.resolve(["model=mutation"]).model


@pytest.fixture
def model() -> MutationModel:
    return MutationModel(SETTINGS, syntax=Inline())


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    with Timeline(tmp_path / "timeline") as timeline:
        yield timeline


def sampling(seed: int, *, temperature: float = 1.0, max_tokens: int = 1000) -> Sampling:
    return Sampling(temperature=temperature, seed=seed, stop=(), max_tokens=max_tokens)


def children(model: MutationModel, program: str, each: Sequence[Sampling]) -> list[Generation]:
    fan = model.fanout(token_ids=model.encode(program), sampling=each)
    while fan.indices:
        model.step()
    return fan.take()


def proposal(program: str, *, operator: str = "mutation", seed: int = 7) -> Proposal:
    parent = Candidate(id="p", program=program, score=0.5)
    return Proposal(iteration=0, parent=parent, history=(), operator=operator, k=2, seed=seed)


def mutation(model: MutationModel, *, max_tokens: int) -> Mutation:
    prompts = config.resolve([]).prompts
    problem = load_problem(Path(shipped()["signal"]))
    return Mutation(problem=problem, tokenizer=model, max_tokens=max_tokens, prompts=prompts)


def test_it_has_every_method_of_a_language_model() -> None:
    methods = {
        name: inspect.signature(method, eval_str=True)
        for name, method in inspect.getmembers(LanguageModel, inspect.isfunction)
        if not name.startswith("_") and name != "reload"  # which is for an engine that fails
    }
    assert {"encode", "fanout", "step", "load", "forget", "close"} <= set(methods)
    for name, expected in methods.items():
        own = inspect.signature(getattr(MutationModel, name), eval_str=True)
        assert [*own.parameters.values()] == [*expected.parameters.values()], name


def test_nothing_imports_torch_or_vllm_for_it() -> None:
    code = (
        "import sys; from engine import config, parts; from engine.run import main\n"
        "settings = config.resolve(['model=mutation'])\n"
        "with parts.model_loader(settings, syntax=None) as load: load().close()\n"
        "sys.exit(any(name.split('.')[0] in ('torch', 'vllm') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_child_follows_from_prompt_seed_and_temperature(model: MutationModel) -> None:
    each = [sampling(1), sampling(2), sampling(2, temperature=9.0), sampling(1)]
    first, again = (children(model, PROGRAM, each) for _ in range(2))
    assert [child.text for child in first] == [child.text for child in again]
    assert [child.index for child in first] == [0, 1, 2, 3]
    assert first[0].text == first[3].text == mutated(PROGRAM, seed=1, temperature=1.0)
    assert len({child.text for child in first}) == 3
    other = children(model, PROGRAM.replace("2", "5"), each)
    assert {child.text for child in other}.isdisjoint(child.text for child in first)


def test_tokens_are_characters_and_none_is_cached(model: MutationModel) -> None:
    text = "x = 'é\U0001f600'\ny = 1\n"
    assert "".join(map(chr, model.encode(text))) == text
    for child in children(model, text, [sampling(seed) for seed in range(5)]):
        assert (child.prompt_tokens, child.cached_prompt_tokens) == (len(text), 0)
        assert "".join(map(chr, child.token_ids)) == child.text
        assert child.finish_reason == "stop" and child.llm_seconds > 0


def test_a_child_ended_early_is_written_all_the_same(model: MutationModel) -> None:
    whole = children(model, PROGRAM, [sampling(1), sampling(2)])
    fan = model.fanout(token_ids=model.encode(PROGRAM), sampling=[sampling(1), sampling(2)])
    fan.abort(1)
    fan.abort(1)
    assert fan.indices == (0,) and fan.texts() == {}
    (ended,) = fan.take()
    assert (ended.index, ended.text, ended.finish_reason) == (1, whole[1].text, "stop")
    model.step()
    (other,) = fan.take()
    assert other.text == whole[0].text
    assert not fan.indices


def test_a_closed_fan_out_hands_out_nothing(model: MutationModel) -> None:
    fan = model.fanout(token_ids=model.encode(PROGRAM), sampling=[sampling(1), sampling(2)])
    fan.abort(0)
    fan.close()
    model.step()
    assert fan.take() == [] and not fan.indices


def test_a_child_that_is_too_long_is_cut_off_and_no_program(model: MutationModel) -> None:
    (child,) = children(model, PROGRAM, [sampling(1, max_tokens=9)])
    assert len(child.token_ids) == 9 and child.finish_reason == "length"
    operator = mutation(model, max_tokens=9)
    asked = proposal(PROGRAM)
    prompt = operator.compose(asked)
    (found,) = operator.parsing(parent=asked.parent, prompt=prompt, generation=child)()
    assert found.program is None


@pytest.mark.parametrize(
    "demand",
    [
        {"stop": ("\n",)},
        {"banned": (3,)},
        {"grammar": "root ::= x"},
        {"schema": '{"type": "object"}'},
    ],
)
def test_what_it_can_not_follow_is_refused(model: MutationModel, demand: dict[str, object]) -> None:
    values: dict[str, object] = {"temperature": 1.0, "seed": 1, "stop": (), "max_tokens": 9}
    asked = Sampling(**{**values, **demand})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="follows no stop"):
        model.fanout(token_ids=model.encode(PROGRAM), sampling=[asked])


def test_a_prompt_that_leaves_no_room_is_an_error(model: MutationModel) -> None:
    with pytest.raises(ValueError, match="exceed the model's"):
        children(model, PROGRAM, [sampling(1, max_tokens=model.max_model_len)])
    operator = mutation(model, max_tokens=model.max_model_len - 10)
    assert operator.longest_parent == 10
    with pytest.raises(UserError, match=r"candidate p has .* raise model\.max_model_len"):
        operator.compose(proposal(PROGRAM))


def test_it_takes_no_messages(model: MutationModel) -> None:
    with pytest.raises(UserError, match="use operator mutation"):
        model.chat_frame(system="Be brief.")


def test_the_decoder_runs_it_in_its_thread(model: MutationModel, timeline: Timeline) -> None:
    each = [sampling(seed) for seed in range(4)]
    with Decoder(model=model, timeline=timeline) as decoder:  # type: ignore[arg-type]
        for call in range(3):
            decoder.submit(
                call,
                iteration=call,
                token_ids=model.encode(PROGRAM),
                sampling=each,
                is_over=lambda text: True,
            )
        decoder.abort(1)
        finished: list[tuple[int, Generation]] = []
        deadline = time.monotonic() + 60
        while decoder.in_flight and time.monotonic() < deadline:
            finished += decoder.completed()
    assert sorted((call, child.index) for call, child in finished) == [
        (call, index) for call in range(3) for index in range(4)
    ]
    for _, child in finished:
        assert child.text == mutated(PROGRAM, seed=child.index, temperature=1.0)


def test_the_operator_shows_the_parent_and_takes_the_answer(model: MutationModel) -> None:
    operator = mutation(model, max_tokens=1000)
    asked = proposal(PROGRAM)
    prompt: Prompt = operator.compose(asked)
    assert prompt.text == PROGRAM
    assert list(prompt.token_ids) == model.encode(PROGRAM)
    for child in children(model, prompt.text, [sampling(seed) for seed in range(5)]):
        (found,) = operator.parsing(parent=asked.parent, prompt=prompt, generation=child)()
        assert found.program is not None and found.program.text == child.text
        assert not operator.is_complete(parent=asked.parent, prompt=prompt, text=child.text)


@pytest.mark.parametrize("text", ["def f(:", "x = \0", "(" * 300])
def test_an_answer_that_is_no_program_is_none(model: MutationModel, text: str) -> None:
    operator = mutation(model, max_tokens=1000)
    asked = proposal(PROGRAM)
    answer = completion(0, text)
    prompt = operator.compose(asked)
    (found,) = operator.parsing(parent=asked.parent, prompt=prompt, generation=answer)()
    assert found.program is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["model=mutation", "search.operators.infill=1"],
            "infill is 1.0; it must be 0 with model=mu",
        ),
        (["model=mutation", "search.operators.mutation=0"], "search.operators is"),
        (["search.operators.mutation=0.5"], "mutation is 0.5; it must be 0 with a language model"),
        (
            ["model.kind=mutation"],
            "search.operators.infill is 1.0; it must be 0 with model=mutation",
        ),
        (["model=mutation", "model.kind=vllm"], "mutation is 1.0; it must be 0 with a language"),
        (["model.kind=other"], "model.kind is 'other'; it must be 'vllm' or 'mutation'"),
        (
            ["model=mutation", "cache=lmcache"],
            "cache.kind is 'lmcache'; it must be none with model",
        ),
        (
            ["model=mutation", "model.engine.max_num_seqs=9"],
            "model.engine is {'max_num_seqs': 9}; it must be empty with mod",
        ),
    ],
)
def test_operators_and_models_that_do_not_go_together_are_refused(
    arguments: list[str], words: str
) -> None:
    with pytest.raises(UserError) as refused:
        config.resolve(arguments)
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_its_preset_asks_for_mutations_alone() -> None:
    settings = config.resolve(["model=mutation"])
    weights = settings.search.operators
    assert settings.model.kind == "mutation"
    assert {name for name, weight in weights.items() if weight} == {"mutation"}
    assert not config.resolve([]).search.operators["mutation"]

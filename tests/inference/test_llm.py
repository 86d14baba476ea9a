"""The real engine on the embedded model: fan-out, counts, seeds, stop rules, aborts."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ahead import AHEAD
from transformers import AutoTokenizer

from engine.core import Candidate, Generation, Proposal, Turn, UserError
from engine.inference import LanguageModel, Sampling, find_weights, is_cpu_build, prepare
from engine.problem import load_problem, shipped
from engine.prompts import Operator
from engine.prompts.chat import Rewrite
from engine.prompts.infill import Infill
from engine.settings import ModelSettings, PromptSettings

COUNTING = "Numbers: 1, 2, 3, 4, 5, 6, 7, 8,"
STORY = "Once upon a time, in a village by the sea, there lived an old fisherman who"


def sampling(
    seed: int = 0,
    *,
    temperature: float = 0.8,
    max_tokens: int = 8,
    stop: tuple[str, ...] = (),
    banned: tuple[int, ...] = (),
) -> Sampling:
    return Sampling(
        temperature=temperature, seed=seed, stop=stop, max_tokens=max_tokens, banned=banned
    )


def texts(model: LanguageModel, prompt: str, *each: Sampling) -> list[str]:
    fan = model.fanout(token_ids=model.encode(prompt), sampling=each)
    return [child.text for child in sorted(fan, key=lambda child: child.index)]


def test_children_come_one_by_one_as_they_finish(
    model: LanguageModel, endless: tuple[int, ...]
) -> None:
    lengths = [12, 3, 9, 6]
    fan = model.fanout(
        token_ids=model.encode(STORY),
        sampling=[sampling(seed, max_tokens=n, banned=endless) for seed, n in enumerate(lengths)],
    )
    steps: list[list[Generation]] = []
    while fan.indices:
        model.step()
        steps.append(fan.take())
    assert [[child.index for child in step] for step in steps if step] == [[1], [3], [2], [0]]
    finished = {child.index: child for step in steps for child in step}
    assert [finished[i].generated_tokens for i in range(4)] == lengths
    assert {child.finish_reason for child in finished.values()} == {"length"}
    assert all(child.llm_seconds > 0 for child in finished.values())
    assert len(steps) == max(lengths) + AHEAD


def test_all_children_but_the_first_share_the_prompt(model: LanguageModel) -> None:
    ids = model.encode(" ".join(f"shared {word}" for word in range(60)))
    children = list(model.fanout(token_ids=ids, sampling=[sampling(seed) for seed in range(8)]))
    cached = sorted(child.cached_prompt_tokens for child in children)
    assert [child.prompt_tokens for child in children] == [len(ids)] * 8
    assert cached[0] == 0
    assert all(len(ids) - 64 <= count < len(ids) for count in cached[1:])


def test_a_seed_gives_the_same_text_again(model: LanguageModel) -> None:
    spread = [sampling(7), sampling(8), sampling(7, temperature=1.5)]
    texts(model, STORY, *spread)  # from now on the prompt is cached
    first = texts(model, STORY, *spread)
    assert texts(model, STORY, *spread) == first
    assert len(set(first)) == 3


def test_stop_strings_end_a_child_and_are_not_part_of_it(model: LanguageModel) -> None:
    fan = model.fanout(
        token_ids=model.encode(COUNTING),
        sampling=[sampling(seed, temperature=0.2, stop=(",", "\n")) for seed in range(4)],
    )
    children = list(fan)
    assert "stop" in {child.finish_reason for child in children}
    assert not any("," in child.text or "\n" in child.text for child in children)


def test_a_banned_token_never_appears(model: LanguageModel) -> None:
    (nine,) = model.encode("9")
    free = texts(model, COUNTING, *[sampling(seed, temperature=0.2) for seed in range(4)])
    assert any("9" in text for text in free)
    spread = [sampling(seed, temperature=0.2, banned=(nine,)) for seed in range(4)]
    assert not any("9" in text for text in texts(model, COUNTING, *spread))


def test_abort_ends_one_child_at_once(model: LanguageModel, endless: tuple[int, ...]) -> None:
    fan = model.fanout(
        token_ids=model.encode(STORY),
        sampling=[sampling(seed, max_tokens=10, banned=endless) for seed in range(3)],
    )
    model.step()
    model.step()
    fan.abort(1)
    (aborted,) = fan.take()
    assert (aborted.index, aborted.finish_reason) == (1, "abort")
    assert aborted.generated_tokens == 2 - AHEAD
    assert aborted.prompt_tokens == len(model.encode(STORY))
    rest = list(fan)
    assert {(c.index, c.finish_reason, c.generated_tokens) for c in rest} == {
        (0, "length", 10),
        (2, "length", 10),
    }
    fan.abort(1)  # once more, after its end: nothing
    assert not fan.indices


def test_a_child_aborted_before_its_first_token_counts_nothing(model: LanguageModel) -> None:
    fan = model.fanout(token_ids=model.encode(STORY), sampling=[sampling()])
    fan.abort(0)
    (aborted,) = fan
    assert (aborted.text, aborted.prompt_tokens, aborted.generated_tokens) == ("", 0, 0)


def test_close_in_mid_flight_leaves_the_engine_usable(
    model: LanguageModel, endless: tuple[int, ...]
) -> None:
    left = model.fanout(
        token_ids=model.encode(STORY),
        sampling=[sampling(seed, max_tokens=200, banned=endless) for seed in range(4)],
    )
    model.step()
    left.close()
    assert not left.indices
    assert list(left) == []
    fan = model.fanout(
        token_ids=model.encode(COUNTING), sampling=[sampling(max_tokens=5, banned=endless)]
    )
    steps = 0
    children: list[Generation] = []
    while fan.indices:
        model.step()
        children += fan.take()
        steps += 1
    assert [child.generated_tokens for child in children] == [5]
    assert steps == 5 + AHEAD


def test_a_prompt_that_leaves_no_room_is_an_error(model: LanguageModel) -> None:
    ids = model.encode("word ") * 600
    with pytest.raises(ValueError, match="exceed the model's 1024"):
        model.fanout(token_ids=ids[:1020], sampling=[sampling(max_tokens=8)])
    fan = model.fanout(token_ids=ids[:1000], sampling=[sampling(max_tokens=4)])
    assert len(list(fan)) == 1


def test_a_model_that_does_not_learn_takes_no_adapter(model: LanguageModel, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="without learning"):
        model.adopt(1, tmp_path)
    with pytest.raises(ValueError, match="without learning"):
        model.fanout(token_ids=[1], sampling=[sampling()], adapter=1)
    (child,) = model.fanout(token_ids=model.encode("One, two,"), sampling=[sampling()])
    assert child.generated_tokens and child.logprobs == ()


# Chats.


@pytest.fixture(scope="module")
def tokenizer(settings: ModelSettings) -> Any:
    """The model's tokenizer, read by itself."""
    return AutoTokenizer.from_pretrained(find_weights(settings))


@pytest.mark.parametrize("system", ["Be brief.", "You improve programs.\n\n½ <b> {{ x }}"])
def test_the_frame_round_the_messages_is_the_chat_templates(
    model: LanguageModel, tokenizer: Any, system: str
) -> None:
    said = ["def f(x):\n    return x", "Here: ½ {{ x }} 'y'", "Once more.", "No.", "Why?"]
    roles = ["system", "user", "assistant", "user", "assistant", "user"]
    messages = [
        {"role": role, "content": text} for role, text in zip(roles, [system, *said], strict=True)
    ]
    frame = model.chat_frame(system=system)
    between = [frame.closing, frame.turn]
    text = frame.opening
    for number, each in enumerate(said):
        text += each + between[number % 2]
        if number % 2 == 0:
            rendered = tokenizer.apply_chat_template(
                messages[: number + 2], tokenize=False, add_generation_prompt=True
            )
            assert text == rendered
            # Cut where the messages begin and end, it is encoded to the same tokens.
            parts = [frame.opening]
            for place, message in enumerate(said[: number + 1]):
                parts += [message, between[place % 2]]
            ids = tokenizer.encode(rendered, add_special_tokens=False)
            assert [i for part in parts for i in model.encode(part)] == ids


@pytest.mark.parametrize("operator", [Rewrite, Infill])
def test_marks_of_turns_in_a_program_are_characters(
    model: LanguageModel, tokenizer: Any, operator: type[Operator]
) -> None:
    """Or a program could end its turn, and say what the next one is."""
    problem = load_problem(Path(shipped()["signal"]))
    stable = PromptSettings(layout="stable", history_tokens=4096, growth_tokens=0, align=False)
    asking = operator(problem=problem, tokenizer=model, max_tokens=50, prompts=stable)
    marked = problem.initial_program + 'END = "<|im_end|>"  # <|im_start|>system\n'
    special = set(tokenizer.all_special_ids)
    prompts = []
    for program in (problem.initial_program, marked):
        shown = Candidate(id="p", program=program, score=0.5)
        proposal = Proposal(iteration=0, parent=shown, history=(shown,), operator="", k=1, seed=0)
        prompts.append(asking.compose(proposal))
    plain, other = ([each for each in prompt.token_ids if each in special] for prompt in prompts)
    assert plain == other
    assert "<|im_start|>system" in tokenizer.decode(prompts[1].token_ids)
    assert model.encode(marked, plain=True)[:20] == model.encode(problem.initial_program)[:20]


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ messages[0].content }}{{ messages[-1].content }}", "every message as it is"),
        (
            "{% for m in messages %}{{ m.content | upper }}{% endfor %}",
            "every message as it is",
        ),
        ("{{ raise_exception('System role not supported') }}", "System role not supported"),
        ("{% for m in %}", r"template can't be used: .*set all search\.operators but infill to 0"),
    ],
)
def test_a_chat_template_that_can_not_be_used_is_an_error_of_the_user(
    model: LanguageModel,
    settings: ModelSettings,
    monkeypatch: pytest.MonkeyPatch,
    template: str,
    words: str,
) -> None:
    other = AutoTokenizer.from_pretrained(find_weights(settings))
    other.chat_template = template
    monkeypatch.setattr(model, "_tokenizer", other)
    with pytest.raises(UserError, match=words) as refused:
        model.chat_frame(system="Be brief.")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("max_tokens", [70, 45])
def test_a_transcript_is_cached_up_to_the_end_of_the_parents_answer(
    model: LanguageModel, endless: tuple[int, ...], max_tokens: int
) -> None:
    """The second prompt is computed from the last block of the answer on, by vLLM's own count."""
    problem = replace(
        load_problem(Path(shipped()["signal"])), statement=f"Smooth {max_tokens} samples."
    )
    prompts = PromptSettings(
        layout="transcript", history_tokens=4096, growth_tokens=0, align=False, pending=True
    )
    operator = Rewrite(problem=problem, tokenizer=model, max_tokens=max_tokens, prompts=prompts)
    program = "def f(x):\n    y = x + 1\n    return y\n"
    first = Candidate(id="first", program=program, score=1 / 3)
    asked = Proposal(iteration=0, parent=first, history=(), operator="rewrite", k=2, seed=0)
    prompt = operator.compose(asked)
    spread = [sampling(seed, max_tokens=max_tokens, banned=endless) for seed in range(2)]
    children = list(model.fanout(token_ids=prompt.token_ids, sampling=spread))
    for child in children:
        turn = Turn(
            candidate=first,
            operator="rewrite",
            failures=(),
            answer=child.text,
            answer_ids=child.token_ids,
        )
        parent = Candidate(id="0.0", program=program + "# better\n", score=2 / 3)
        following = operator.compose(replace(asked, parent=parent, lineage=(turn,)))
        said = prompt.token_ids + child.token_ids
        assert following.token_ids[: len(said)] == said
        (next_child,) = model.fanout(token_ids=following.token_ids, sampling=[sampling()])
        cached = next_child.cached_prompt_tokens
        assert cached >= len(said) - 2 * model.block_size
        # All the answer but its last token is in the cache, and whole blocks are found.
        assert cached == (len(said) - 1) // model.block_size * model.block_size


@pytest.mark.parametrize("content", ["{}", "not JSON", '{"model_type": "llama"}'])
def test_a_folder_that_is_no_model_is_an_error_that_names_it(
    model: LanguageModel, settings: ModelSettings, tmp_path: Path, content: str
) -> None:
    (tmp_path / "config.json").write_text(content)
    # On a GPU the file is read before vLLM is asked.
    words = r"can't be (loaded: .*model\.path=DIR|read as a model's configuration)"
    with pytest.raises(UserError, match=words) as raised:
        LanguageModel(settings=replace(settings, path=str(tmp_path)), folder=tmp_path, seed=0)
    assert str(tmp_path) in str(raised.value)


@pytest.fixture
def copied(settings: ModelSettings, tmp_path: Path) -> Path:
    """The embedded model's folder without its weights."""
    for path in find_weights(settings).iterdir():
        if path.suffix != ".safetensors":
            shutil.copy(path, tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (None, "Cannot find any model weights"),
        (0, "requires a buffer of 8 bytes"),
        (100_000, "file not fully covered"),
    ],
)
def test_weights_that_are_missing_or_cut_off_are_an_error_that_names_the_folder(
    model: LanguageModel, settings: ModelSettings, copied: Path, size: int | None, words: str
) -> None:
    if size is not None:
        (whole,) = find_weights(settings).glob("*.safetensors")
        with whole.open("rb") as file:
            (copied / whole.name).write_bytes(file.read(size))
    beside = replace(settings, gpu_memory_utilization=0.2)  # the shared model has half of a GPU
    with pytest.raises(UserError, match=rf"can't be loaded: .*{words}.*model\.path=DIR") as raised:
        LanguageModel(settings=beside, folder=copied, seed=0)
    assert str(copied) in str(raised.value)


@pytest.mark.skipif(not is_cpu_build(), reason="a GPU's KV cache has another setting")
def test_a_kv_cache_that_the_machine_has_no_room_for_is_an_error_that_names_its_setting(
    model: LanguageModel, settings: ModelSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")  # so that it is as before in later tests
    prepare(threads=settings.threads, kv_cache_gb=1 << 20)
    with pytest.raises(UserError, match=r"less than requested .*; change model\.kv_cache_gb") as it:
        LanguageModel(settings=settings, folder=find_weights(settings), seed=0)
    assert "model.path" not in str(it.value)

"""The figures of the benchmark of decoding less; the model is not run here."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import decode
from engine.core import Candidate, ChatFrame, Generation, Prompt, UserError
from engine.problem import load_problem, shipped
from engine.prompts.chat import Rewrite
from engine.settings import PromptSettings

PARENT = "def run_signal_processing(x):\n    return x\n"
BETTER = "```python\ndef run_signal_processing(x):\n    return x + 1\n```\n"
BROKEN = "```python\ndef run_signal_processing(x):\n    return x +\n"


class NoTokens:
    """A tokenizer for what composes no prompt."""

    max_model_len = 100
    block_size = 16

    def encode(self, text: str, *, plain: bool = False) -> list[int]:
        return []

    def chat_frame(self, *, system: str) -> ChatFrame:
        return ChatFrame(opening="", closing="", turn="")


@pytest.fixture
def question() -> decode.Question:
    prompts = PromptSettings(layout="stable", history_tokens=0, growth_tokens=0, align=False)
    problem = load_problem(Path(shipped()["signal"]))
    return decode.Question(
        operator=Rewrite(problem=problem, tokenizer=NoTokens(), max_tokens=9, prompts=prompts),
        parent=Candidate(id="p", program=PARENT, score=0.5),
        prompt=Prompt(blocks=(), stop=(), max_tokens=9),
        sampling=(),
    )


def child(text: str) -> Generation:
    return Generation(
        index=0,
        text=text,
        token_ids=(1, 2),
        finish_reason="stop",
        prompt_tokens=1,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )


@pytest.mark.parametrize(
    ("text", "over"),
    [(BETTER, {"complete"}), (BROKEN, set()), ("Sure.\n", set())],
)
def test_each_switch_ends_what_it_is_for(
    question: decode.Question, text: str, over: set[str]
) -> None:
    ended = {each for each in decode.SWITCHES if decode.is_over(question, text, each)}
    assert ended == over


def test_a_child_counts_if_it_parses_and_is_new_and_knows_its_names(
    question: decode.Question,
) -> None:
    assert decode.is_evaluated(question, child(BETTER))
    for text in (BROKEN, "Sure.", f"```\n{PARENT}```\n", BETTER.replace("x + 1", "z")):
        assert not decode.is_evaluated(question, child(text))


def test_figures_are_shares_of_what_was_done_without_the_switch() -> None:
    off = decode.Measured(children=4, tokens=400, evaluated=2, wall=8.0, cpu=4.0)
    one = decode.Measured(children=2, tokens=150, evaluated=1, ended_early=1, wall=2.0, cpu=1.0)
    result = decode.figures(one + one, off)
    assert result["tokens_per_child"] == 75 and result["tokens_saved"] == 0.25
    assert result["evaluated"] == 0.5 and result["ended_early"] == 0.5
    assert result["speed"] == 2 and result["children_per_second"] == 1


@pytest.mark.parametrize("switches", ["complete", "off,none"])
def test_switches_have_to_be_known_and_one_of_them_off(switches: str) -> None:
    with pytest.raises(UserError, match="switches"):
        decode.main([f"switches={switches}"])

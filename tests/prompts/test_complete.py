"""Answers that are still being written: no false alarm, whatever follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from words import Words

from engine.core import Block, Candidate, Gap, Generation, Part, Prompt
from engine.problem import load_problem, shipped
from engine.prompts import Operator
from engine.prompts.chat import Rewrite
from engine.prompts.infill import Infill
from engine.settings import PromptSettings

pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning")  # of programs made here

PROMPTS = PromptSettings(layout="stable", history_tokens=0, growth_tokens=0, align=False)
PROBLEM = replace(load_problem(Path(shipped()["signal"])), entry_point="f")
PARENT = Candidate(
    id="p", program="import math\n\n\ndef f(x):\n    y = x\n    y = x\n    return y\n", score=0.5
)
PROMPT = Prompt(blocks=(), stop=(), max_tokens=64)
CHAT = {"problem": PROBLEM, "tokenizer": Words(), "max_tokens": 64, "prompts": PROMPTS}
REWRITE, INFILL = Rewrite(**CHAT), Infill(**CHAT)


def parsed(
    operator: Operator, text: str, *, prompt: Prompt = PROMPT, reason: str = "stop"
) -> str | None:
    generation = Generation(
        index=0,
        text=text,
        token_ids=(1,),
        finish_reason=reason,
        prompt_tokens=1,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )
    (found,) = operator.parsing(parent=PARENT, prompt=prompt, generation=generation)()
    return None if found.program is None else found.program.text


def is_complete(operator: Operator, text: str, *, prompt: Prompt = PROMPT) -> bool:
    return operator.is_complete(parent=PARENT, prompt=prompt, text=text)


def check_every_start(operator: Operator, text: str, *, prompt: Prompt = PROMPT) -> None:
    """What is said of any start of a completion has to be true of the completion."""
    child = parsed(operator, text, prompt=prompt)
    for end in range(len(text) + 1):
        start = text[:end]
        if is_complete(operator, start, prompt=prompt):
            ended = parsed(operator, start, prompt=prompt, reason="abort")
            assert child is None or child == ended, start


# Whole programs.

OPEN = "```python\n"
NEW = "def f(x):\n    return x + 1\n"
QUOTE = "def f(x):\n    # here:\n    y = x\n    ...\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{OPEN}{NEW}```",
        f"```\r\n{NEW}```\r\nIt is",
        f"Now:\n{OPEN}{PARENT.program}```\nBetter:\n{OPEN}{NEW}```\nI",
        f"{OPEN}{QUOTE}```\nBetter:\n{OPEN}{NEW}```\n",
        f"<think>{OPEN}{NEW.replace('1', '2')}```</think>\n{OPEN}{NEW}```\n",
    ],
)
def test_an_answer_is_complete_where_its_program_ends(text: str) -> None:
    assert is_complete(REWRITE, text)
    later = f"\n{OPEN}def f(x):\n    return 7\n```\n"
    assert parsed(REWRITE, text) == parsed(REWRITE, text + later) == NEW


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"{OPEN}{NEW}",
        f"{OPEN}{PARENT.program}```\n",
        f"{OPEN}{QUOTE}```\n",
        f"{OPEN}def g(x):\n    return 2\n```\n",
        f"````python\n{NEW}```\n",
        f"<think>\n{OPEN}{NEW}```\n",
        NEW,
    ],
)
def test_an_answer_that_may_still_change_is_not_complete(text: str) -> None:
    assert not is_complete(REWRITE, text)


def test_a_prompt_that_opens_the_thoughts_is_answered_behind_them() -> None:
    prompt = replace(PROMPT, blocks=(Block(part=Part.ASK, text="<a><think>\n", token_ids=(1,)),))
    draft = f"{OPEN}{NEW.replace('1', '2')}```\n"
    assert not is_complete(REWRITE, draft, prompt=prompt)
    text = f"{draft}</think>\n{OPEN}{NEW}```\n"
    assert is_complete(REWRITE, text, prompt=prompt)
    assert parsed(REWRITE, text, prompt=prompt) == NEW


@pytest.mark.parametrize(
    "text",
    [
        f'{OPEN}def f(x):\n    """As:\n    {OPEN}    f(1)\n    ```\n    """\n    return 3\n```\nI',
        f"1. So:\n   {OPEN}   def f(x):\n       y = 3\n       return y\n   ```\n2. Done",
    ],
)
def test_an_indented_fence_ends_no_more_than_it_closes(text: str) -> None:
    assert parsed(REWRITE, text) is not None and is_complete(REWRITE, text)
    check_every_start(REWRITE, text)


ANSWERS = st.lists(
    st.sampled_from(
        [
            *(
                OPEN,
                "```\n",
                "````\n",
                "```",
                "   ```",
                "    ```\n",
                "Sure.\n",
                "<think>",
                "</think>\n",
                "\r\n",
                " ",
                "\n",
            ),
            *(NEW, QUOTE, PARENT.program, "def f(", "    return 1\n", "  oh\n", "x = (\n", ")\n"),
            *("'''\n", "try:\n", "    pass\n", "@d\n", "x = = 1\n", "\\\n", "\x1c\n"),
        ]
    ),
    max_size=9,
).map("".join)


@given(ANSWERS, st.booleans())
def test_what_is_said_of_the_start_of_a_rewrite_is_true_of_all_of_it(
    text: str, in_block: bool
) -> None:
    check_every_start(REWRITE, OPEN + NEW + text if in_block else text)


# Infills.


def gaps() -> Iterator[Prompt]:
    program = PARENT.program
    line = program.index("y = x")
    for gap in (
        Gap(start=line, end=line, after="\n    ", whole_lines=True),
        Gap(start=line, end=line + len("y = x"), whole_lines=True),
        Gap(start=len(program), end=len(program), after="\n", whole_lines=True),
        Gap(start=line + 4, end=line + 5),
    ):
        yield replace(PROMPT, gap=gap)


def test_three_lines_of_a_statement_are_enough() -> None:
    prompt = next(gaps())
    assert not is_complete(INFILL, "y = 1\n    y = 2\n    y = 3", prompt=prompt)
    assert is_complete(INFILL, "y = 1\n    y = 2\n    y = 3\n", prompt=prompt)


@given(
    st.sampled_from(list(gaps())),
    st.lists(
        st.sampled_from(
            ["y = 1", "y = = 1", "\n", "\n", "    ", " ", "if x:", "(", ")", "'", "\\", "# a", "y"]
        ),
        max_size=9,
    ).map("".join),
)
def test_what_is_said_of_the_start_of_an_infill_is_true_of_all_of_it(
    prompt: Prompt, text: str
) -> None:
    check_every_start(INFILL, text, prompt=prompt)

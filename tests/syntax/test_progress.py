"""Answers that are still being written: no false alarm, whatever follows."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from words import Words

from engine import syntax
from engine.core import Block, Candidate, Gap, Generation, Part, Prompt
from engine.problem import load_problem, shipped
from engine.prompts import Operator
from engine.prompts.chat import Diff, Rewrite
from engine.prompts.infill import Infill
from engine.settings import PromptSettings
from engine.syntax.progress import cannot_continue, is_due

pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning")  # of programs made here

ROOT = Path(__file__).resolve().parents[2]
PROMPTS = PromptSettings(layout="stable", history_tokens=0, growth_tokens=0, align=False)
PROBLEM = replace(load_problem(Path(shipped()["signal"])), entry_point="f")
PARENT = Candidate(
    id="p", program="import math\n\n\ndef f(x):\n    y = x\n    y = x\n    return y\n", score=0.5
)
PROMPT = Prompt(blocks=(), stop=(), max_tokens=64)
CHAT = {"problem": PROBLEM, "tokenizer": Words(), "max_tokens": 64, "prompts": PROMPTS}
REWRITE, DIFF = Rewrite(**CHAT), Diff(**CHAT)
INFILL = Infill(**CHAT)


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


def is_hopeless(operator: Operator, text: str, *, prompt: Prompt = PROMPT) -> bool:
    return operator.is_hopeless(parent=PARENT, prompt=prompt, text=text)


def is_complete(operator: Operator, text: str, *, prompt: Prompt = PROMPT) -> bool:
    return operator.is_complete(parent=PARENT, prompt=prompt, text=text)


def check_every_start(operator: Operator, text: str, *, prompt: Prompt = PROMPT) -> None:
    """What is said of any start of a completion has to be true of the completion."""
    child = parsed(operator, text, prompt=prompt)
    for end in range(len(text) + 1):
        start = text[:end]
        if is_hopeless(operator, start, prompt=prompt):
            assert child is None, start
        if is_complete(operator, start, prompt=prompt):
            ended = parsed(operator, start, prompt=prompt, reason="abort")
            assert child is None or child == ended, start


# Python.

UNFINISHED = [
    "x = (1,\n",
    "f(a, b=\n",
    "x = [\n    1,\n\n    # more\n",
    "x = '''abc\nit's \"\n",
    'def f():\n    """Open.\n',
    'x = f"""{a}\n',
    "x = 'abc\\\n",
    "x = 1 + \\\n",
    "@decorator\n",
    "@decorator\n# why\n",
    "def f():\n",
    "class A:\n    def f(self):\n",
    "try:\n    a\n",
    "try:\n    a\nexcept A:\n    b\nfinally:\n",
    "try:\n    try:\n        a\n    finally:\n        b\n",
    "if a:\n    b\nelse:\n",
    "match a:\n",
    "match a:\n    case 1:\n",
    "with open(a) as b, \\\n",
    "def f():\n    def g():\n        nonlocal x\n",
    "for i in a:\n    # nothing yet\n",
    "async def f():\n    async with a:\n",
    "",
    "\n\n",
    "# only a comment\n",
    "x = 1\n\x1c\n",  # a blank, to `str.strip`; an error in the middle of a program
]


@pytest.mark.parametrize("source", UNFINISHED)
def test_what_may_go_on_is_left_alone(source: str) -> None:
    assert not cannot_continue(source)


@pytest.mark.parametrize(
    "source",
    [
        "x = = 1\n",
        "x =\n",
        "x = 'abc\n",
        "x = (1 +\ndef f():\n",
        "x = (1]\n",
        "x = 1)\n",
        "x = {'a': 1, 'b' 2,\n",
        "print 'a'\n",
        "x = 1\n  y = 2\n",
        "def f():\nx = 1\n",
        "if a:\n        b\n    c\n",
        "try:\n    a\nb = 1\n",
        "@decorator\nx = 1\n",
        "x = f'{a'\n",
        "x = f'{a b}'\n",
        "f(a=1, b)\n",
        "else:\n",
        "return 1\n",
        "for a in b:\n    pass\nbreak\n",
        "def f(a, a):\n    pass\n",
        "x = \0\n",
        "x = 5 = y\n",
        "x = 1 \\ \ny\n",
        "x = 0777\n",
        "x = \u201ca\u201d\n",
    ],
)
def test_an_error_that_nothing_mends_is_found(source: str) -> None:
    assert cannot_continue(source)
    assert cannot_continue("import a\n\n" + source + "y = 1\n")


def test_nothing_is_found_in_the_starts_of_programs_that_parse() -> None:
    chosen = random.Random(5).sample(sorted(ROOT.glob("engine/**/*.py")), 12)
    for path in [*chosen, *ROOT.glob("evaluators/*/initial.py")]:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        for count in range(0, len(lines), 3):
            assert not cannot_continue("".join(lines[:count])), (path, count)


WRITTEN = "\n".join(
    [
        "import numpy as np",
        "@np.vectorize",
        "def f(x: int, *, y=(1,",
        "        2)) -> None:",
        '    """Say \'so\'.',
        "",
        '    And more."""',
        "    try:",
        '        z = f"{x!r:>{y}} {{}}" \\',
        "            'b'",
        "    except (ValueError,",
        "            TypeError):",
        "        with a as b: pass",
        "    else:",
        "        match x:",
        "            case [1, *_]: return {**x, 'a': [i for i in x if i]}",
        "    lambda: (yield)",
        "",
    ]
)


@given(
    st.integers(0, len(WRITTEN)), st.integers(0, 12), st.text("()[]{}'\"\\\n :#=fx,", max_size=4)
)
def test_a_changed_program_that_parses_gives_no_alarm(at: int, left_out: int, put_in: str) -> None:
    source = (WRITTEN[:at] + put_in + WRITTEN[at + left_out :]).strip()
    if syntax.parse(source + "\n") is not None:
        lines = source.split("\n")
        for count in range(1, len(lines)):
            assert not cannot_continue("\n".join(lines[:count]) + "\n")


def test_long_texts_are_looked_at_ever_less_often() -> None:
    due = [lines for lines in range(2000) if is_due(lines)]
    assert due[:17] == list(range(17))
    assert all(after - before <= max(1, before / 7) for before, after in itertools.pairwise(due))
    assert sum(due) < 16 * 2000


# Whole programs.

OPEN = "```python\n"
NEW = "def f(x):\n    return x + 1\n"
QUOTE = "def f(x):\n    # here:\n    y = x\n    ...\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{OPEN}{NEW}    x = = 2\n",
        f"Sure:\n```\n{NEW}  oh\n",
        f"{OPEN}{QUOTE}```\n{OPEN}{NEW}x = (]\n",
        f"{OPEN}pip install\n```\n{OPEN}{NEW}x = (]\n```\nDone.\n",
        f"<think>\n{OPEN}{NEW}```\n</think>\n{OPEN}{NEW}x = (]\n",
        f"````\n{NEW}\n```\nhere\n",  # three backticks are no end of a block that began with four
    ],
)
def test_a_program_that_no_line_can_mend_is_hopeless(text: str) -> None:
    assert is_hopeless(REWRITE, text)
    assert parsed(REWRITE, text + f"```\n{OPEN}{NEW}```\n") is None


@pytest.mark.parametrize(
    "text",
    [
        "x = = 2\n",  # no block: one may follow
        f"{OPEN}x = = 2\n",  # no program yet
        f"{OPEN}def g(x) =\n```\n",
        f"{OPEN}{NEW}    x = = 2",  # the line goes on
        f"<think>\n{OPEN}{NEW}x = = 2\n",
    ],
)
def test_an_answer_that_may_still_hold_a_program_is_not_hopeless(text: str) -> None:
    assert not is_hopeless(REWRITE, text)


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


ANSWERS = st.lists(
    st.sampled_from(
        [
            *(
                OPEN,
                "```\n",
                "````\n",
                "```",
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


# Search and replace.


def block(search: str, replacement: str) -> str:
    return f"<<<<<<< SEARCH\n{search}=======\n{replacement}>>>>>>> REPLACE\n"


GOOD = block("    return y\n", "    return -y\n")


@pytest.mark.parametrize(
    "text",
    [
        "<<<<<<< SEARCH\nnothing\n=======\n",
        "I say:\n```\n<<<<<<< SEARCH\n\n=======\n    retu",
        GOOD + block("    return y\n", ""),
        GOOD + "<<<<<<< SEARCH\nnothing\n=======\n<<<<<<< SEARCH\n",
    ],
)
def test_a_block_that_does_not_apply_is_hopeless(text: str) -> None:
    assert is_hopeless(DIFF, text)
    assert parsed(DIFF, text + "\n" + GOOD) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I do not know.\n",
        "<<<<<<< SEARCH\nnothing\n",  # may be begun anew
        "<<<<<<< SEARCH\nnothing\n=======",
        "<<<<<<< SEARCH\n    return y\n=======\n",
        GOOD,
    ],
)
def test_blocks_that_may_still_apply_go_on(text: str) -> None:
    assert not is_hopeless(DIFF, text)
    assert not is_complete(DIFF, text)


def test_a_later_block_that_can_not_apply_ends_the_answer_with_those_before_it() -> None:
    text = GOOD + "<<<<<<< SEARCH\nnothing\n=======\n"
    assert is_complete(DIFF, text) and not is_hopeless(DIFF, text)
    assert parsed(DIFF, text, reason="abort") == PARENT.program.replace("return y", "return -y")


def test_a_last_line_that_looks_like_a_mark_is_waited_for() -> None:
    text = GOOD + "<<<<<<< SEARCH\nnothing\n=======\n<<<<<<< SEARCH"
    assert not is_complete(DIFF, text) and not is_hopeless(DIFF, text)
    assert is_complete(DIFF, text + " my mind")
    assert is_hopeless(DIFF, text + "\n")


@given(
    st.lists(
        st.sampled_from(
            [
                *("<<<<<<< SEARCH\n", "<<<<< SEARCH", "=======\n", ">>>>>>> REPLACE\n", "```\n"),
                *("    y = x\n", "    return y\n", "    return 2\r\n", "\n", "nothing\n", GOOD),
            ]
        ),
        max_size=14,
    ).map("".join)
)
def test_what_is_said_of_the_start_of_a_diff_is_true_of_all_of_it(text: str) -> None:
    check_every_start(DIFF, text)


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


def test_a_first_line_with_an_error_is_hopeless_and_three_lines_are_enough() -> None:
    prompt = next(gaps())
    assert is_hopeless(INFILL, "y = = 2\n", prompt=prompt)
    assert not is_hopeless(INFILL, "y = = 2", prompt=prompt)
    assert not is_hopeless(INFILL, "if x:\n", prompt=prompt)
    assert not is_complete(INFILL, "y = 1\n    y = 2\n    y = 3", prompt=prompt)
    assert is_complete(INFILL, "y = 1\n    y = 2\n    y = 3\n", prompt=prompt)


def test_what_stands_behind_a_statement_on_its_line_may_mend_it() -> None:
    parent = replace(PARENT, program="def f(x):\n    y = x; z = 'a'\n    return y\n")
    start = parent.program.index("y = x")
    prompt = replace(PROMPT, gap=Gap(start=start, end=start + 5, whole_lines=True))
    assert not INFILL.is_hopeless(parent=parent, prompt=prompt, text="y = 'b\n")


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

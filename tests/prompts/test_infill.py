"""The infill through its face: what is asked, and what becomes of every kind of answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from grammars import accepts, sentence
from words import STABLE, NoChat, Words

from engine import syntax
from engine.core import (
    Attempt,
    Candidate,
    Direction,
    Evaluation,
    Failure,
    Gap,
    Generation,
    Problem,
    Prompt,
    Proposal,
    UserError,
)
from engine.problem import load_problem, shipped
from engine.prompts.infill import Infill
from engine.syntax.places import SiteKind, find_sites

PLAIN = """\
import numpy as np
from scipy import ndimage, signal


def run(noisy_signal, window_size=20):
    \"\"\"Smooth.\"\"\"
    length = len(noisy_signal) - window_size + 1
    weights = np.exp(np.linspace(-2, 0, window_size))
    filtered = np.zeros(length)
    for i in range(length):
        filtered[i] = np.sum(weights * noisy_signal[i : i + window_size])
    return {"filtered_signal": filtered}
"""

PARENTS = {
    "plain": PLAIN,
    "tabs": "import numpy as np\ndef f(x, n=2):\n\tif n:\n\t\tx = x\t* 2\n\treturn np.exp(x)\n",
    "CRLF": "import numpy as np\r\ndef f(x):\r\n    y = x * 2\r\n    return np.exp(y)\r\n",
    "decorated": (
        "import functools\nimport math\n@functools.cache\ndef f(x, n=1):\n    y = x + n\n"
        "    @functools.cache\n    def g(z):\n        w = math.sqrt(z)\n        return w\n"
        "    return g(y)\n"
    ),
    "nested": (
        "import numpy as np\ndef f(x):\n    a = x\n    def g(y, n=3):\n        b = y + n\n"
        "        return b\n    c = g(a)\n    def h(z): return z\n    return h(c)\n"
    ),
    "one-liner": "def f(x): return x + 1",
    "one-line loop": "def f(x):\n    for i in x: y = i + 1\n    return y\n",
    "only integers": "def f(n=3, m=4):\n    k = n + m\n    return k * 2\n",
    "no parameters": "import numpy as np\ndef f():\n    return np.zeros(3)\n",
    "module without functions": (
        "import numpy.typing as npt\nimport scipy\ndef f(x: npt.ArrayLike):\n    y = x\n"
        "    return y\n"
    ),
    "imports inside": (
        "def g(x):\n    import math\n    y = x\n    return math.sqrt(y)\n\ndef f(x):\n"
        "    import numpy as np\n    y = x + 1\n    return np.exp(y)\n"
    ),
    "class": (
        "import math\nclass A:\n    def __call__(self, x):\n        y = math.exp(x)\n"
        "        return self.a.b(y)[0]\nrun = A()\n"
    ),
    "methods": "def f(x):\n    y = x[0].mean() + x.real.sum()\n    return y.sum()\n",
    "non-ASCII": "import numpy as np\ndef f(é):\n    ß = 'ü' * len(é); ö = ß + é\n    return ö\n",
    "comments": "def f(x):  # why\n    # because\n    y = x  # so\n    return y\n",
    "strings": "def f(x):\n    y = f'{x}' + 'a' 'b' + r'\\d'\n    return y, None, True, 1j, ...\n",
    "shadowed": "import numpy as np\ndef f(np, x):\n    y = np\n    return x + y\n",
    "generator": "def f(x):\n    y = sum(i * 2 for i in x)\n    return y * x\n",
    "close": "def f(x):\n    return-x\n",
    "truth": "def f(x):\n    y = g(x, k=True)\n    return y * x\n",
    "deep": "def f(x):\n    return " + "+".join(["x"] * 60) + "\n",
}
WITHOUT_SITES = {
    "lambda": "run = lambda x: x\n",
    "no last line end": "run = lambda x: x",
    "async": "async def f(x):\n    return x\n",
    "docstring": 'def f(x):\n    """Do nothing."""\n',
    "imported": "from numpy import mean as run\n",
    "empty": "",
}


@pytest.fixture(scope="module")
def problem() -> Problem:
    return replace(load_problem(Path(shipped()["signal"])), statement="Make f good. ½")


@pytest.fixture(scope="module")
def tokenizer() -> Words:
    return NoChat()  # an infill is no chat


TUNED = ("kinds", "calls", "bans", "most_lines")
MakeInfill = Callable[..., Infill]


@pytest.fixture(scope="module")
def make(problem: Problem, tokenizer: Words) -> MakeInfill:
    """Return an infill with the same chance for every kind of place, if nothing else is said."""
    even = {"kinds": dict.fromkeys(SiteKind, 1.0), "calls": 0.5, "bans": 0.5}
    parts = {"problem": problem, "tokenizer": tokenizer, "max_tokens": 0, "prompts": STABLE}

    def made(**other: Any) -> Infill:
        chosen = {**even, **{name: other.pop(name) for name in TUNED if name in other}}
        return type("Tuned", (Infill,), chosen)(**{**parts, **other})

    return made


@pytest.fixture(scope="module")
def infill(make: MakeInfill) -> Infill:
    return make()


def candidate(program: str, score: float = 0.1 + 0.2) -> Candidate:
    return Candidate(id="p", program=program, score=score)


def proposal(program: str, seed: int = 0) -> Proposal:
    return Proposal(
        iteration=3, parent=candidate(program), history=(), operator="infill", k=8, seed=seed
    )


def generation(text: str, finish_reason: str = "stop") -> Generation:
    return Generation(
        index=0,
        text=text,
        token_ids=(1,),
        finish_reason=finish_reason,
        prompt_tokens=1,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )


def prompt_of(gap: Gap | None) -> Prompt:
    return Prompt(blocks=(), stop=(), max_tokens=1, gap=gap)


def gap_of(prompt: Prompt) -> Gap:
    assert prompt.gap is not None
    return prompt.gap


def read(infill: Infill, program: str, gap: Gap, text: str, reason: str = "stop") -> str | None:
    return answered(infill, program, prompt_of(gap), text, reason)


def answered(
    infill: Infill, program: str, prompt: Prompt, text: str, reason: str = "stop"
) -> str | None:
    (found,) = infill.parsing(
        parent=candidate(program), prompt=prompt, generation=generation(text, reason)
    )()
    return None if found.program is None else found.program.text


# What is asked


def test_failed_attempts_are_not_shown(infill: Infill) -> None:
    program = "def f(x):\n    y = x\n    return y\n"
    failed = Evaluation(score=None, failure=Failure.ERROR, message="no")
    attempts = (Attempt(id="1.0", program="def f(x):\n    return q\n", evaluation=failed),)
    asked = proposal(program)
    assert infill.compose(replace(asked, failures=attempts)) == infill.compose(asked)


@pytest.mark.parametrize("name", [*PARENTS, *WITHOUT_SITES])
def test_the_prompt_is_the_task_the_score_and_the_parent_up_to_the_gap(
    infill: Infill, tokenizer: Words, name: str
) -> None:
    program = {**PARENTS, **WITHOUT_SITES}[name]
    head = '"""Make f good. ½\n\nHigher scores are better.\n"""\n\n'
    for seed in range(12):
        prompt = infill.compose(proposal(program, seed))
        gap = gap_of(prompt)
        shown = program[: gap.start] + gap.before
        text = head + "# score 0.30000000000000004\n" + shown
        # The space before the next word belongs to that word.
        assert prompt.text == text.removesuffix(" ")
        assert tokenizer.decode(prompt.token_ids) == prompt.text
        assert prompt.token_ids[: len(tokenizer.encode(head))] == tuple(tokenizer.encode(head))
        assert prompt.max_tokens > 0


@pytest.mark.parametrize("name", [*PARENTS, *WITHOUT_SITES])
def test_the_same_proposal_gives_the_same_prompt(infill: Infill, name: str) -> None:
    program = {**PARENTS, **WITHOUT_SITES}[name]
    for seed in range(5):
        assert infill.compose(proposal(program, seed)) == infill.compose(proposal(program, seed))


def test_chance_reaches_every_kind_of_place(infill: Infill) -> None:
    tree = syntax.parse(PLAIN)
    assert tree is not None
    kinds = {(site.start, site.end, site.kind) for site in find_sites(PLAIN, tree)}
    seen = set()
    for seed in range(300):
        gap = gap_of(infill.compose(proposal(PLAIN, seed)))
        seen |= {kind for start, end, kind in kinds if (start, end) == (gap.start, gap.end)}
        if gap.before:
            seen.add("call" if gap.before.endswith(".") else "assignment to a name")
    assert seen == {*SiteKind, "call", "assignment to a name"}


def test_no_place_is_filled_that_the_entry_point_does_not_reach(
    infill: Infill, problem: Problem
) -> None:
    live = f"def {problem.entry_point}(x):\n    return used(x) + 1\n"
    dead = "def unused(x):\n    y = x + 2\n    return y\n"
    program = f"{dead}\n\n{live}\n\ndef used(x):\n    z = x * 3\n    return z\n"
    starts = {gap_of(infill.compose(proposal(program, seed))).start for seed in range(60)}
    assert min(starts) > len(dead) and max(starts) > program.index("def used")
    other = program.replace(problem.entry_point, "other")  # nobody knows what is called there
    starts = {gap_of(infill.compose(proposal(other, seed))).start for seed in range(60)}
    assert min(starts) < len(dead)


def test_a_kind_without_weight_is_not_chosen(make: MakeInfill) -> None:
    infill = make(kinds=dict.fromkeys(SiteKind, 0.0) | {SiteKind.CONSTANT: 1.0})
    for seed in range(20):
        gap = gap_of(infill.compose(proposal(PLAIN, seed)))
        assert PLAIN[gap.start : gap.end] in {"1", "-2", "0", '"filtered_signal"'}


def test_the_statement_cannot_end_the_head(make: MakeInfill, problem: Problem) -> None:
    statement = 'Write """f""" with \\ and \\N{x} and "quotes"'
    operator = make(problem=replace(problem, statement=statement))
    head, _, rest = operator.compose(proposal(PARENTS["one-liner"])).text.partition("# score")
    assert head.count('"""') == 2
    assert head.startswith('"""') and head.endswith('\n"""\n\n')
    assert "with \\ and \\N{x}" in head
    assert rest


def test_a_minimising_problem_says_so(make: MakeInfill, problem: Problem) -> None:
    lower = replace(problem, direction=Direction.MINIMISE)
    text = make(problem=lower).compose(proposal(PLAIN)).text
    assert "Lower scores are better." in text
    assert "Higher" not in text


@pytest.mark.parametrize("name", PARENTS)
def test_what_is_banned_is_the_token_that_the_parent_goes_on_with(
    make: MakeInfill, tokenizer: Words, name: str
) -> None:
    infill = make(bans=1.0)
    program = PARENTS[name]
    bans = 0
    for seed in range(30):
        prompt = infill.compose(proposal(program, seed))
        gap = gap_of(prompt)
        assert len(prompt.banned) <= 1
        if not gap.before and prompt.banned:
            bans += 1
            gone_on = tokenizer.decode(prompt.token_ids + prompt.banned)
            head = prompt.text[: prompt.text.index("# score")]
            assert (head + "# score 0.30000000000000004\n" + program).startswith(gone_on)
    assert bans


def test_no_token_is_banned_without_chance(make: MakeInfill) -> None:
    infill = make(bans=0.0)
    assert all(infill.compose(proposal(PLAIN, seed)).banned == () for seed in range(20))


def test_a_prompt_never_outgrows_the_context(make: MakeInfill) -> None:
    for seed in range(20):
        whole = make(tokenizer=Words()).compose(proposal(PLAIN, seed))
        tokens = len(whole.token_ids) + whole.max_tokens
        tight = make(tokenizer=Words(max_model_len=tokens))
        prompt = tight.compose(proposal(PLAIN, seed))
        assert len(prompt.token_ids) + prompt.max_tokens == tokens
        short = make(tokenizer=Words(max_model_len=tokens - 1))
        with pytest.raises(UserError, match=r"candidate p .*raise model\.max_model_len") as caught:
            short.compose(proposal(PLAIN, seed))
        assert "\n" not in str(caught.value)


def test_the_longest_parent_fits(make: MakeInfill) -> None:
    tokenizer = Words(max_model_len=600)
    operator = make(tokenizer=tokenizer)
    program = "def f(x):\n"
    while len(tokenizer.encode(program + "    x = x + 1\n")) <= operator.longest_parent:
        program += "    x = x + 1\n"
    for seed in range(30):
        prompt = operator.compose(proposal(program, seed))
        assert len(prompt.token_ids) + prompt.max_tokens <= 600


def test_a_parent_that_does_not_parse_is_a_bug_of_the_caller(infill: Infill) -> None:
    with pytest.raises(ValueError, match="parent does not parse"):
        infill.compose(proposal("def f(:\n"))


# Parents without a place: a lambda is a valid entry point


@pytest.mark.parametrize("name", WITHOUT_SITES)
def test_a_parent_without_a_place_is_gone_on_with(infill: Infill, name: str) -> None:
    parent = WITHOUT_SITES[name]
    prompt = infill.compose(proposal(parent))
    assert prompt.grammar is None
    child = answered(infill, parent, prompt, "run = abs\n# more")
    assert child is not None
    expected = parent + "\n" * (parent != "" and not parent.endswith("\n"))
    assert child == expected + "run = abs\n# more\n"


# What becomes of the answers


@pytest.mark.parametrize("name", PARENTS)
def test_the_parents_own_text_gives_the_parent(make: MakeInfill, name: str) -> None:
    infill = make(most_lines=100)
    program = PARENTS[name]
    replaced = 0
    for seed in range(40):
        prompt = infill.compose(proposal(program, seed))
        gap = gap_of(prompt)
        own = program[gap.start : gap.end]
        if gap.start == gap.end or ("\n" in own and not gap.whole_lines):
            continue
        replaced += 1
        for space in ("", " "):  # the model writes the space that the prompt left out
            assert answered(infill, program, prompt, space + own) == program
    assert replaced


@pytest.mark.parametrize("name", PARENTS)
def test_what_is_inserted_is_a_statement_in_its_block(infill: Infill, name: str) -> None:
    program = PARENTS[name]
    for seed in range(40):
        prompt = infill.compose(proposal(program, seed))
        gap = gap_of(prompt)
        if gap.start != gap.end or gap.before:
            continue
        child = answered(infill, program, prompt, "pass\n")
        assert child is not None
        lines, inserted = syntax.source_lines(program), syntax.source_lines(child)
        number = next(
            i
            for i, (a, b) in enumerate(zip(lines, inserted, strict=False))
            if a.strip() != b.strip()
        )
        assert inserted[number].strip() == "pass"
        indentation = lines[number][: -len(lines[number].lstrip())]
        assert inserted[number] == indentation + "pass\n"
        assert inserted[:number] + inserted[number + 1 :] == lines


@pytest.mark.parametrize("name", PARENTS)
def test_what_a_grammar_lets_through_makes_a_program_that_reads_what_is_there(
    infill: Infill, name: str
) -> None:
    program = PARENTS[name]
    known = syntax.parse(program)
    assert known is not None
    undefined = syntax.read(program).undefined
    held = 0
    for seed in range(40):
        prompt = infill.compose(proposal(program, seed))
        if prompt.grammar is None:
            continue
        held += 1
        written = sentence(prompt.grammar, seed)
        gap = gap_of(prompt)
        child = answered(infill, program, prompt, written.removesuffix("\n"))
        if program[gap.end : gap.end + 1] == "." and child is None:
            continue  # a number has no attributes
        assert child is not None, (written, gap)
        tree = syntax.parse(child)
        assert tree is not None
        assert syntax.read(child).undefined == undefined, child
        if program[gap.end : gap.end + 1] != ".":
            whole = gap.before + written.strip() + gap.after
            filled = program[: gap.start] + whole + program[gap.end :]
            # A space keeps a word off the one before it.
            assert child.replace("return ", "return") == filled.replace("return ", "return")
    # Without an array there is no grammar.
    assert bool(held) is (name not in ("no parameters", "only integers"))


def test_a_whole_number_is_replaced_by_one(infill: Infill) -> None:
    for seed in range(100):
        prompt = infill.compose(proposal(PLAIN, seed))
        gap = gap_of(prompt)
        own = PLAIN[gap.start : gap.end]
        if prompt.grammar is not None and own in ("1", "window_size", "len(noisy_signal)"):
            assert accepts(prompt.grammar, "17\n")
            assert not accepts(prompt.grammar, "0.5\n")
            assert not accepts(prompt.grammar, "np.exp(noisy_signal)\n")
        if prompt.grammar is not None and own == "range(length)":
            assert not accepts(prompt.grammar, "length // 2 // 2\n")


@pytest.mark.parametrize("own", ["True", "False", "not True"])
def test_a_truth_value_is_replaced_by_one(infill: Infill, own: str) -> None:
    program = PARENTS["truth"].replace("True", own)
    prompts = [infill.compose(proposal(program, seed)) for seed in range(60)]
    place = program.index(own)
    grammars = [each.grammar for each in prompts if gap_of(each).start == place]
    assert grammars
    for grammar in grammars:
        assert grammar is not None
        assert accepts(grammar, "True\n") and accepts(grammar, " False\n")
        assert not accepts(grammar, "0\n") and not accepts(grammar, "x\n")


STATEMENT = "def f(x):\n    y = x\n    return y\n"
LINES = Gap(start=STATEMENT.index("y = x"), end=STATEMENT.index("\n    return"), whole_lines=True)


@pytest.mark.parametrize(
    ("reason", "written"),
    [
        ("stop", "y = 2\n    y += 1"),
        ("length", "y = 2"),  # the last line was cut off
        ("abort", "y = 2"),
    ],
)
def test_a_last_line_that_was_cut_off_is_left_out(
    infill: Infill, reason: str, written: str
) -> None:
    child = read(infill, STATEMENT, LINES, "y = 2\n    y += 1", reason)
    assert child == STATEMENT.replace("y = x", written)


def test_no_more_lines_than_asked_for(make: MakeInfill) -> None:
    child = read(make(most_lines=2), STATEMENT, LINES, "y = 1\n    y = 2\n    y = 3\n    y = 4")
    assert child == STATEMENT.replace("y = x", "y = 1\n    y = 2")


def test_the_prompt_of_another_operator_is_refused(infill: Infill) -> None:
    with pytest.raises(ValueError, match="not a prompt of this operator"):
        infill.parsing(
            parent=candidate(PLAIN), prompt=prompt_of(None), generation=generation("x")
        )()

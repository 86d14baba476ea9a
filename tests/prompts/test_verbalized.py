"""Verbalized Sampling: what is asked for, with how much room, and what an answer holds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from words import STABLE, Words

from engine import syntax
from engine.core import (
    Attempt,
    Candidate,
    Evaluation,
    Failure,
    Generation,
    Parsed,
    Part,
    Problem,
    Proposal,
    Turn,
    UserError,
)
from engine.problem import load_problem, shipped
from engine.prompts import OPERATORS, Operator, make_operators
from engine.settings import MOST_CHILDREN, PromptSettings

CLASSIC = replace(STABLE, layout="classic")
TRANSCRIPT = replace(STABLE, layout="transcript")
ONE = "def f(x):\n    return x + 1\n"
TWO = 'def f(x):\n    """Not "x"."""\n    return {"a": [x]}["a"][0]\n'
FENCED = f'def f(x):\n    """\n```\n{ONE}```\n    """\n'
PARENT = Candidate(id="p", program="def f(x):\n    return x\n", score=0.1 + 0.2)
OTHER = Candidate(id="q", program="def f(x):\n    return x - 5\n", score=1e-20)
BROKEN = Attempt(
    id="3.2",
    program="def f(x):\n    return late(x)\n",
    evaluation=Evaluation(score=None, failure=Failure.ERROR, message="NameError: late"),
)
PROPOSAL = Proposal(
    iteration=3, parent=PARENT, history=(OTHER,), operator="verbalized", k=4, seed=1
)


@pytest.fixture(scope="module")
def problem() -> Problem:
    whole = load_problem(Path(shipped()["signal"]))
    return replace(whole, statement="Make f good.", entry_point="f")


def made(
    problem: Problem,
    *,
    prompts: PromptSettings = STABLE,
    context: int = 10_000,
    max_tokens: int = 100,
) -> Operator:
    words = Words(max_model_len=context)
    return make_operators(
        OPERATORS.names, problem=problem, tokenizer=words, max_tokens=max_tokens, prompts=prompts
    )["verbalized"]


def read(operator: Operator, text: str, *, k: int = 4, reason: str = "stop") -> list[Parsed]:
    generation = Generation(
        index=0,
        text=text,
        token_ids=(1,),
        finish_reason=reason,
        prompt_tokens=1,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )
    prompt = operator.compose(replace(PROPOSAL, k=k))
    return list(operator.parsing(parent=PARENT, prompt=prompt, generation=generation)())


def listed(*codes: str) -> str:
    return json.dumps(
        {"responses": [{"code": code, "probability": 1 / len(codes)} for code in codes]}
    )


@pytest.mark.parametrize("prompts", [CLASSIC, STABLE, TRANSCRIPT], ids=lambda each: each.layout)
def test_the_request_asks_for_k_programs_as_json_at_the_end(
    problem: Problem, prompts: PromptSettings
) -> None:
    operator = made(problem, prompts=prompts)
    prompt = operator.compose(replace(PROPOSAL, failures=(BROKEN,)))
    assert (prompt.at_once, prompt.grammar, prompt.stop) == (4, None, ())
    assert json.loads(prompt.schema or "")["properties"]["responses"]["maxItems"] == 4
    request = prompt.text[prompt.text.index("Write better versions") :]
    assert "Number of versions: 4.\n" in request and '"probability"' in request
    assert request.index('"code"') < request.index("# Failed attempts") < request.index("late(x)")
    assert BROKEN.id in prompt.shows
    alone = operator.compose(replace(PROPOSAL, k=1))
    assert alone.at_once == 1 and "Number of versions: 1.\n" in alone.text
    assert alone.schema is not None  # it asks for JSON all the same


def test_what_is_before_the_request_is_what_a_rewrite_shows(problem: Problem) -> None:
    operators = make_operators(
        OPERATORS.names, problem=problem, tokenizer=Words(), max_tokens=9, prompts=STABLE
    )
    one, plain = (operators[name].compose(PROPOSAL) for name in ("verbalized", "rewrite"))
    size = [block.part for block in one.blocks].index(Part.ASK)
    assert one.blocks[:size] == plain.blocks[:size] and size > 2
    # So is a prompt for another number, whose children the cache then serves as far.
    more = operators["verbalized"].compose(replace(PROPOSAL, k=7))
    assert more.blocks[:size] == one.blocks[:size]


@pytest.mark.parametrize(
    ("context", "max_tokens", "k", "expected"),
    [
        (10_000, 100, 1, 100),
        (10_000, 100, 4, 400),
        (10_000, 100, 4096, 5000),
        (1001, 100, 8, 500),
        (1000, 700, 1, 700),  # as a rewrite has it
        (1000, 700, 8, 700),
    ],
)
def test_an_answer_has_the_tokens_of_k_programs_up_to_half_of_the_context(
    problem: Problem, context: int, max_tokens: int, k: int, expected: int
) -> None:
    operator = made(problem, context=context, max_tokens=max_tokens)
    prompt = operator.compose(replace(PROPOSAL, k=k))
    assert prompt.max_tokens == expected
    assert len(prompt.token_ids) + prompt.max_tokens <= context


@pytest.mark.parametrize("prompts", [CLASSIC, STABLE, TRANSCRIPT], ids=lambda each: each.layout)
def test_the_longest_parent_fits_whatever_k_is(problem: Problem, prompts: PromptSettings) -> None:
    for context in (700, 2000):
        operator = made(problem, prompts=prompts, context=context)
        words = Words()
        start = "def f(x):\n    return x\n#"
        size = operator.longest_parent - len(words.encode(start))
        longest = replace(PARENT, program=start + " a" * size)
        assert len(words.encode(longest.program)) == operator.longest_parent > 50
        for k in (1, 8, MOST_CHILDREN):
            proposal = replace(PROPOSAL, parent=longest, k=k, failures=(BROKEN,))
            prompt = operator.compose(proposal)
            assert len(prompt.token_ids) + prompt.max_tokens <= context
        with pytest.raises(UserError, match=r"raise model\.max_model_len"):
            wide = replace(PARENT, program=longest.program + " a" * 70)
            operator.compose(replace(PROPOSAL, parent=wide, k=MOST_CHILDREN))


def test_the_programs_of_an_answer_come_in_its_order(problem: Problem) -> None:
    operator = made(problem)
    expected = [Parsed(program=syntax.read(each), probability=0.5) for each in (ONE, TWO)]
    assert read(operator, listed(ONE, TWO)) == expected
    # The first K are kept.
    assert read(operator, listed(ONE, TWO), k=1) == expected[:1]
    three = [each.program for each in read(operator, listed(ONE, TWO, ONE), k=2)]
    assert three == [each.program for each in expected]
    # One that was cut off holds those before the cut.
    (only,) = read(operator, listed(ONE, TWO)[:-4], reason="length")
    assert only == replace(expected[0], probability=None)
    assert read(operator, "", reason="length") == []


@pytest.mark.parametrize(
    ("code", "program"),
    [
        ("\n\n" + ONE + "\n", ONE),
        (ONE.replace("\n", "\r\n"), ONE),
        (f"```python\n{ONE}```", ONE),  # though it was asked not to
        (FENCED, FENCED),
        ("Sure", None),
        ("def f(x:", None),
        ("", None),
        ("def f(x):\n    return '\0'", None),
        ("def f(x):\n    return '\ud800'", None),  # JSON may spell half of a character
    ],
)
def test_an_entry_is_a_program_or_a_child_without_one(
    problem: Problem, code: str, program: str | None
) -> None:
    first, second = read(made(problem), listed(code, TWO))
    expected = None if program is None else syntax.read(program)
    assert first == Parsed(program=expected, probability=0.5)
    assert second.program == syntax.read(TWO)


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ((0.7, 0.3), (0.7, 0.3)),
        ((0.7, 0.301), (0.7, 0.301)),  # the most that the source allows
        ((0.7, 0.302), (None, None)),
        ((0.1,) * 10, (0.1,) * 4),  # all of the answer's count, the first K are kept
        ((0.5, None), (None, None)),
        ((0.5, 0.5, 2.0), (None,) * 3),
    ],
)
def test_probabilities_that_do_not_add_up_to_1_are_none(
    problem: Problem, given: tuple[float | None, ...], recorded: tuple[float | None, ...]
) -> None:
    entries = [{"code": ONE, "probability": each} for each in given]
    parsed = read(made(problem), json.dumps({"responses": entries}))
    assert tuple(each.probability for each in parsed) == recorded


def test_the_request_says_what_stays_and_the_task_what_the_archive_tells_apart(
    problem: Problem,
) -> None:
    text = replace(made(problem), dimensions=("nodes", "depth")).compose(PROPOSAL).text
    assert "takes the inputs that the current program takes and returns outputs of the same" in text
    assert "each combination of these measures: nodes, depth." in text
    assert "each combination" not in made(problem).compose(PROPOSAL).text


def test_nothing_ends_an_answer_early(problem: Problem) -> None:
    operator = made(problem)
    prompt = operator.compose(PROPOSAL)
    for text in (listed(ONE), listed("def ("), '{"responses": [{"code": "def f(x):\n    )'):
        assert not operator.is_complete(parent=PARENT, prompt=prompt, text=text)


@pytest.mark.parametrize("name", ["verbalized", "rewrite"])
def test_a_transcript_begins_anew_with_a_program_that_such_an_answer_held(
    problem: Problem, name: str
) -> None:
    words = Words()
    operators = make_operators(
        OPERATORS.names, problem=problem, tokenizer=words, max_tokens=9, prompts=TRANSCRIPT
    )
    turns = [
        Turn(
            candidate=candidate,
            operator=operator,
            failures=(),
            answer=text,
            answer_ids=tuple(words.encode(text)),
        )
        for candidate, operator, text in (
            (PARENT, "verbalized", listed(ONE)),
            (replace(OTHER, id="r"), "rewrite", f"```python\n{TWO}```"),
        )
    ]
    last = Candidate(id="s", program=TWO, score=0.5)
    text = operators[name].compose(replace(PROPOSAL, parent=last, lineage=tuple(turns))).text
    assert "responses" not in text.partition("Write better versions")[0]
    assert text.count("# Current program, score 1e-20") == 1  # from there on it goes on
    assert text.count("Write a better version") == 1 + (name == "rewrite")

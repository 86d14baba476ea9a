"""Layouts: how much of a prompt stands where an earlier one has the same tokens."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from words import END, STABLE, Words

from engine.core import (
    Attempt,
    Block,
    Candidate,
    Evaluation,
    Failure,
    Part,
    Pending,
    Problem,
    Prompt,
    Proposal,
    Turn,
    UserError,
)
from engine.problem import load_problem, shipped
from engine.prompts import OPERATORS, Operator, make_operators
from engine.prompts.layouts import Layout, Stable, Transcript, Writer, fitted, less, make_layout
from engine.settings import Layout as LayoutName
from engine.settings import PromptSettings

CLASSIC = replace(STABLE, layout="classic")
LAYOUTS = get_args(LayoutName)
TRANSCRIPT = replace(STABLE, layout="transcript")
NAMES = ("rewrite", "diff", "crossover", "repair", "infill")


@pytest.fixture(scope="module")
def problem() -> Problem:
    return replace(load_problem(Path(shipped()["signal"])), statement="Make f good. ½")


def made(
    problem: Problem, prompts: PromptSettings, *, words: Words | None = None, max_tokens: int = 100
) -> dict[str, Operator]:
    return dict(
        make_operators(
            OPERATORS.names,
            problem=problem,
            tokenizer=words or Words(),
            max_tokens=max_tokens,
            prompts=prompts,
        )
    )


def program(number: int) -> str:
    return f"def f(x):\n    y = x + {number}\n    return y * {number}\n"


def candidate(number: int) -> Candidate:
    return Candidate(id=f"c{number}", program=program(number), score=number / 7)


def attempt(number: int) -> Attempt:
    evaluation = Evaluation(score=None, failure=Failure.TIMEOUT, message=f"late {number}")
    return Attempt(id=f"c{1000 + number}", program=program(1000 + number), evaluation=evaluation)


def proposal(
    parent: int, *history: int, operator: str = "rewrite", lineage: Sequence[Turn] = ()
) -> Proposal:
    return Proposal(
        iteration=3,
        parent=candidate(parent),
        history=tuple(map(candidate, history)),
        operator=operator,
        k=8,
        seed=1,
        lineage=tuple(lineage),
    )


def waiting(*numbers: int) -> tuple[Pending, ...]:
    return tuple(Pending(id=f"c{each}", program=program(each)) for each in numbers)


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two prompts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def before(prompt: Prompt, part: Part) -> int:
    """Return the number of tokens before the first block of a kind."""
    blocks = itertools.takewhile(lambda block: block.part is not part, prompt.blocks)
    return sum(len(block.token_ids) for block in blocks)


def parts(prompt: Prompt) -> list[str]:
    return [kind.value for kind, _ in itertools.groupby(block.part for block in prompt.blocks)]


# What all have in common.


@pytest.mark.parametrize("name", NAMES)
def test_all_layouts_begin_with_the_same_task(problem: Problem, name: str) -> None:
    words = Words()
    tasks = set()
    for layout, parent, turns in itertools.product(LAYOUTS, (1, 2), ([], lineage(2))):
        operator = made(problem, replace(STABLE, layout=layout), words=words)[name]
        prompt = operator.compose(proposal(parent, 4, 5, operator=name, lineage=turns))
        tasks.add(prompt.blocks[0])
        assert [block.part for block in prompt.blocks].count(Part.TASK) == 1
    (task,) = tasks
    assert task.part is Part.TASK and "Make f good. ½" in task.text


def test_the_chat_operators_share_all_but_the_request(problem: Problem) -> None:
    for prompts in (CLASSIC, STABLE, TRANSCRIPT):
        operators = made(problem, prompts, words=Words())
        one, other = (
            operators[name].compose(proposal(3, 4, 5, operator=name, lineage=lineage(3)))
            for name in ("rewrite", "diff")
        )
        size = len(one.blocks) - 2  # the request, and the end of the message
        assert one.blocks[:size] == other.blocks[:size]
        assert one.blocks[size].part is Part.ASK and one.blocks[size] != other.blocks[size]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prompts", [CLASSIC, STABLE, TRANSCRIPT])
def test_scores_keep_all_their_digits(problem: Problem, prompts: PromptSettings, name: str) -> None:
    operator = made(problem, prompts)[name]
    close = [
        replace(candidate(number), score=score)
        for number, score in enumerate((0.1 + 0.2, 0.3, 1e-300, -123456789.12345679))
    ]
    asked = replace(proposal(0), parent=close[0], history=tuple(close))
    text = operator.compose(asked).text
    if prompts.layout == "transcript":
        turns = tuple(turn(each, answer="x") for each in close[1:])
        text = operator.compose(replace(asked, lineage=turns)).text
    for each in close:
        assert f"score {each.score!r}\n" in text or f"score {each.score!r}." in text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prompts", [CLASSIC, STABLE, TRANSCRIPT])
def test_a_prompt_is_its_blocks_and_nothing_that_changes_by_itself(
    problem: Problem, prompts: PromptSettings, name: str
) -> None:
    words = Words()
    asked = proposal(2, 2, 3, 4, operator=name, lineage=lineage(2))
    operator = made(problem, prompts, words=words)[name]
    prompt = operator.compose(asked)
    assert operator.compose(asked) == prompt
    assert made(problem, prompts, words=words)[name].compose(asked) == prompt
    assert operator.compose(replace(asked, iteration=999, compactions=7, k=1)) == prompt
    assert prompt.token_ids == tuple(i for block in prompt.blocks for i in block.token_ids)
    assert prompt.text == "".join(block.text for block in prompt.blocks)
    sampled = [block for block in prompt.blocks if block.part is Part.ANSWER and name != "infill"]
    for block in prompt.blocks:
        if block not in sampled:
            assert words.decode(block.token_ids) == block.text


# Stable.


@pytest.mark.parametrize("name", NAMES)
def test_what_is_appended_leaves_all_tokens_before_it_as_they_were(
    problem: Problem, name: str
) -> None:
    operator = made(problem, STABLE)[name]
    history: tuple[int, ...] = ()
    earlier = operator.compose(proposal(1, operator=name))
    for number in range(10, 16):
        history = (*history, number)
        prompt = operator.compose(proposal(number, *history, operator=name))
        shared = before(earlier, Part.ASK if name == "infill" else Part.PARENT)
        assert shared > before(earlier, Part.HISTORY) or number == 10
        assert common(earlier.token_ids, prompt.token_ids) >= shared
        earlier = prompt


@pytest.mark.parametrize("name", NAMES)
def test_another_parent_changes_nothing_before_it(problem: Problem, name: str) -> None:
    operator = made(problem, STABLE)[name]
    one, other = (operator.compose(proposal(number, 4, 5, 6, operator=name)) for number in (1, 2))
    shared = before(one, Part.ASK if name == "infill" else Part.PARENT)
    assert parts(one)[:2] == ["task", "history"]
    assert before(other, Part.ASK if name == "infill" else Part.PARENT) == shared
    assert shared <= common(one.token_ids, other.token_ids) < len(one.token_ids)


def test_an_infill_shows_its_parent_once_in_a_stable_layout(problem: Problem) -> None:
    prompt = made(problem, STABLE)["infill"].compose(proposal(1, 4, operator="infill"))
    assert parts(prompt) == ["task", "history", "ask"]
    prompt = made(problem, CLASSIC)["infill"].compose(proposal(1, 4, operator="infill"))
    assert parts(prompt) == ["task", "parent", "history", "ask"]


# Pending programs.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prompts", [CLASSIC, STABLE, TRANSCRIPT])
def test_a_prompt_shows_each_pending_program_once_and_says_that_its_score_is(
    problem: Problem, prompts: PromptSettings, name: str
) -> None:
    operator = made(problem, prompts)[name]
    asked = proposal(1, 4, operator=name)
    none, prompt = operator.compose(asked), operator.compose(replace(asked, pending=waiting(8, 9)))
    blocks = [block for block in prompt.blocks if "score pending\n" in block.text]
    assert [block.part for block in blocks] == [Part.HISTORY] * 2
    for number, block in zip((8, 9), blocks, strict=True):
        assert program(number).strip() in block.text
        assert name == "infill" or f"# Program c{number}, score pending\n" in block.text
    left = tuple(block for block in prompt.blocks if block not in blocks)
    assert left == none.blocks  # and nothing else is another
    assert (prompt.gap, prompt.banned, prompt.grammar) == (none.gap, none.banned, none.grammar)


@pytest.mark.parametrize("name", NAMES)
def test_pending_programs_leave_the_history_and_the_conversation_in_the_cache(
    problem: Problem, name: str
) -> None:
    for prompts, kept in ((STABLE, Part.HISTORY), (TRANSCRIPT, Part.ANSWER)):
        operator = made(problem, prompts)[name]
        turns = lineage(4, 5)
        asked = proposal(1, 4, 5, operator=name, lineage=turns)
        one = operator.compose(asked)
        other = operator.compose(replace(asked, pending=waiting(8, 9)))
        after = max(i for i, block in enumerate(one.blocks) if block.part is kept) + 1
        assert other.blocks[:after] == one.blocks[:after]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_that_joins_the_history_differs_in_its_score_alone(
    problem: Problem, name: str
) -> None:
    words = Words()
    operator = made(problem, STABLE, words=words)[name]
    out = operator.compose(replace(proposal(1, 4, operator=name), pending=waiting(8)))
    known = operator.compose(proposal(1, 4, 8, operator=name))
    (one,) = (block for block in out.blocks if "pending" in block.text)
    other = known.blocks[out.blocks.index(one)]
    assert other.text == one.text.replace("pending", repr(8 / 7))
    start = common(one.token_ids, other.token_ids)
    end = common(one.token_ids[::-1], other.token_ids[::-1])
    assert start + 1 + end == len(one.token_ids)  # " pending"
    assert common(out.token_ids, known.token_ids) == start + len(out.blocks[0].token_ids) + len(
        out.blocks[1].token_ids
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_prompt_that_is_too_long_loses_failures_then_the_last_of_the_pending(
    problem: Problem, layout: str, name: str
) -> None:
    prompts = replace(STABLE, layout=layout)
    asked = replace(
        proposal(1, 4, 5, operator=name),
        failures=(attempt(1), attempt(2)),
        pending=waiting(7, 8, 9),
    )
    full = made(problem, prompts)[name].compose(asked)
    size, told = len(full.token_ids) + full.max_tokens, []
    for length in range(size, size - 500, -1):
        try:
            prompt = made(problem, prompts, words=Words(length))[name].compose(asked)
        except UserError:
            break
        assert len(prompt.token_ids) + prompt.max_tokens <= length
        numbers = [each for each in (4, 5, 7, 8, 9) if program(each).strip() in prompt.text]
        told.append((prompt.text.count("late "), *numbers))
    steps = [each for each, _ in itertools.groupby(told)]
    from_the_end = [(4, 5), (4,), ()]
    history = {
        "classic": [(4, 5), (5,), ()],
        "stable": from_the_end,
        "transcript": [()],
        "ancestors": from_the_end,
    }
    first = history[layout][0]
    late = [2, 1, 0] if name != "infill" else [0]
    assert steps == [
        *((count, *first, 7, 8, 9) for count in late),
        *((0, *first, *left) for left in ((7, 8), (7,))),
        *((0, *left) for left in history[layout]),
    ]


# Transcript.


def turn(
    asked: Candidate, *, answer: str, operator: str = "rewrite", failures: tuple[int, ...] = ()
) -> Turn:
    return Turn(
        candidate=asked,
        operator=operator,
        failures=tuple(map(attempt, failures)),
        answer=answer,
        answer_ids=tuple(range(90_000, 90_000 + len(answer.split()))),
    )


def lineage(*asked: int) -> list[Turn]:
    return [turn(candidate(number), answer=f"to {number}") for number in asked]


@dataclass
class Conversations:
    """Grows a population by asking an operator for children of chosen parents."""

    operators: dict[str, Operator]
    words: Words
    prompts: dict[int, Prompt] = field(default_factory=dict)
    lineages: dict[int, tuple[Turn, ...]] = field(default_factory=lambda: {0: ()})

    def child_of(
        self, parent: int, *, operator: str = "rewrite", failures: tuple[int, ...] = (),
        ends: bool = True,
    ) -> int:  # fmt: skip
        """Return the number of a new child; its answer was sampled in tokens of its own."""
        asked = replace(
            proposal(parent, operator=operator, lineage=self.lineages[parent]),
            failures=tuple(map(attempt, failures)),
        )
        number = len(self.lineages)
        prompt = self.operators[operator].compose(asked)
        answer = f"Here:\n```python\n{program(number)}```"
        # Not as the tokenizer would have cut it: letter by letter.
        ids = [each for letter in answer for each in self.words.encode(letter)]
        ids += self.words.encode(END) if ends else []
        self.prompts[number] = prompt
        self.lineages[number] = (
            *self.lineages[parent],
            Turn(
                candidate=candidate(parent),
                operator=operator,
                failures=asked.failures,
                answer=answer,
                answer_ids=tuple(ids),
            ),
        )
        return number

    def said(self, number: int) -> tuple[int, ...]:
        """Return the tokens in the cache once a child was sampled: its prompt and its answer."""
        return self.prompts[number].token_ids + self.lineages[number][-1].answer_ids


def conversations(
    problem: Problem, prompts: PromptSettings = TRANSCRIPT, *, max_model_len: int = 10_000
) -> Conversations:
    words = Words(max_model_len)
    return Conversations(operators=made(problem, prompts, words=words), words=words)


LONG = replace(TRANSCRIPT, history_tokens=5000)


@pytest.mark.parametrize("ends", [True, False])
def test_a_prompt_begins_with_the_parents_own_and_its_answer_token_by_token(
    problem: Problem, ends: bool
) -> None:
    grown = conversations(problem, LONG)
    number = 0
    for step in range(6):
        operator = ("rewrite", "diff")[step % 2]
        failures = (step, step + 1)[: step % 3]
        child = grown.child_of(number, operator=operator, failures=failures, ends=ends)
        if number:
            said = grown.said(number)
            assert grown.prompts[child].token_ids[: len(said)] == said
        number = child
    text = grown.words.decode(grown.prompts[number].token_ids)
    assert text.count(END) == 1 + 2 * 5 + 1  # no answer was ended twice
    for each in range(1, number):
        assert f"{program(each)}```{END}" in text
        assert f"That program has the score {each / 7!r}.\n" in text


def test_siblings_and_cousins_share_all_that_was_said_before_them(problem: Problem) -> None:
    grown = conversations(problem, LONG)
    one, other = (grown.child_of(0) for _ in range(2))
    left, right = grown.child_of(one), grown.child_of(other)
    prompts = grown.prompts
    assert prompts[one] == prompts[other]
    shared = common(prompts[left].token_ids, prompts[right].token_ids)
    assert shared >= len(prompts[one].token_ids)


def test_a_conversation_that_outgrows_its_budget_begins_anew_and_its_heirs_keep_that_start(
    problem: Problem,
) -> None:
    grown = conversations(problem, replace(TRANSCRIPT, history_tokens=300, growth_tokens=60))
    number, starts = 0, []
    for _ in range(40):
        child = grown.child_of(number)
        prompt = grown.prompts[child]
        said = grown.said(number) if number else ()
        if prompt.token_ids[: len(said)] != said:
            assert prompt.text.count("# Current program") == 1
            assert prompt.blocks[1].text.startswith(f"# Current program, score {number / 7!r}\n")
            assert Part.ANSWER not in {block.part for block in prompt.blocks}
            starts.append(number)
        elif starts:
            assert f"# Current program, score {starts[-1] / 7!r}\n" in prompt.blocks[1].text
        spoken = [
            len(block.token_ids)
            for block in prompt.blocks[1:-2]  # without the task and the request
        ]
        assert sum(spoken) <= 360
        number = child
    assert 5 < len(starts) < 30  # once in several iterations
    assert len({b - a for a, b in itertools.pairwise(starts)}) == 1  # the steps are alike here


def test_branches_of_one_conversation_begin_anew_where_each_has_to(problem: Problem) -> None:
    grown = conversations(problem, replace(TRANSCRIPT, history_tokens=300, growth_tokens=60))
    numbers = [0]
    for _ in range(12):
        numbers.append(grown.child_of(numbers[-1]))
    # Asked again for another child of each: the same prompt as the first time.
    for parent, child in itertools.pairwise(numbers):
        assert grown.prompts[grown.child_of(parent)] == grown.prompts[child]


def test_an_answer_of_another_kind_begins_a_conversation_anew(problem: Problem) -> None:
    grown = conversations(problem, LONG)
    first = grown.child_of(0)
    filled = grown.child_of(first, operator="infill")
    asked = grown.child_of(filled)
    prompt = grown.prompts[asked]
    assert parts(prompt) == ["task", "parent", "ask"]
    assert f"score {filled / 7!r}\n" in prompt.blocks[1].text
    heir = grown.prompts[grown.child_of(asked, operator="diff")]
    said = grown.said(asked)
    assert heir.token_ids[: len(said)] == said


def test_an_infill_goes_on_with_the_text_of_its_lineage(problem: Problem) -> None:
    grown = conversations(problem, LONG)
    number = 0
    for operator in ("infill", "rewrite", "infill", "infill"):
        number = grown.child_of(number, operator=operator)
    prompt = grown.prompts[number]
    assert parts(prompt) == ["task", "parent", "answer", "ask"]
    scores = [prompt.text.index(f"# score {each / 7!r}\n") for each in range(number)]
    programs = [prompt.text.index(program(each)) for each in range(number)]
    # The first score stands before its program, the others behind it: they are known later.
    assert [scores[0], *programs] == sorted([scores[0], *programs])
    assert all(p < s for p, s in zip(programs[1:], scores[1:], strict=True))
    one = grown.child_of(0, operator="infill")
    shown = grown.prompts[one]
    # Up to the gap the child has the parent's own text, so its prompt goes on in the same tokens.
    longer = grown.operators["infill"].compose(
        replace(
            proposal(0, operator="infill", lineage=grown.lineages[one]),
            parent=replace(candidate(9), program=program(0)),
        )
    )
    assert common(shown.token_ids, longer.token_ids) >= len(shown.token_ids) - 1
    assert longer.text.startswith(shown.text)


def test_an_answer_that_ends_otherwise_is_kept_as_it_was_sampled(problem: Problem) -> None:
    words = Words()
    operator = made(problem, LONG, words=words)["rewrite"]
    (end,) = words.encode(END)
    for ids in ((5, 6), (5, 6, end), (end,), (), (end, end)):
        said = replace(turn(candidate(0), answer="five six"), answer_ids=ids)
        prompt = operator.compose(proposal(1, lineage=[said]))
        start = operator.compose(proposal(0)).token_ids
        assert prompt.token_ids[: len(start) + len(ids)] == start + ids
        after = prompt.token_ids[len(start) + len(ids) - (ids[-1:] == (end,)) :]
        assert words.decode(after[:3]) == f"{END}\n<user>"


# What is left out.


def test_less_is_shown_from_the_end_so_that_the_prefix_stays(problem: Problem) -> None:
    asked = replace(proposal(1, 4, 5, 6, 7), failures=(attempt(1), attempt(2)))
    full = made(problem, STABLE)["rewrite"].compose(asked)
    size, sizes = len(full.token_ids), []
    for room in range(size, before(full, Part.HISTORY), -1):
        operator = made(problem, STABLE, words=Words(room + 100))["rewrite"]
        try:
            prompt = operator.compose(asked)
        except UserError as error:
            assert f"candidate c1 have {sizes[-1]} tokens" in str(error)
            break
        assert len(prompt.token_ids) <= room
        history = before(prompt, Part.PARENT)
        assert common(prompt.token_ids, full.token_ids) >= history
        sizes.append(len(prompt.token_ids))
    assert len(set(sizes)) == 1 + 2 + 4  # all, two failures less, four programs less
    assert sizes == sorted(sizes, reverse=True)


def test_a_conversation_never_outgrows_the_context(problem: Problem) -> None:
    """Its budget is cut to what fits, so that nothing has to be left out of its start."""
    grown = conversations(problem, replace(TRANSCRIPT, history_tokens=10**6), max_model_len=900)
    number, anew = 0, 0
    for _ in range(40):
        child = grown.child_of(number)
        prompt = grown.prompts[child]
        assert len(prompt.token_ids) + prompt.max_tokens <= 900
        said = grown.said(number) if number else ()
        anew += prompt.token_ids[: len(said)] != said
        number = child
    assert 3 < anew < 20


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prompts", [CLASSIC, STABLE, TRANSCRIPT])
def test_the_longest_parent_fits_in_every_layout(
    problem: Problem, prompts: PromptSettings, name: str
) -> None:
    words = Words(max_model_len=1200)
    operator = made(problem, prompts, words=words)[name]
    long = "def f(x):\n"
    while len(words.encode(long + "    x = x + 1\n")) <= operator.longest_parent:
        long += "    x = x + 1\n"
    parent = replace(candidate(1), program=long, score=-1.2345678901234567e-300)
    turns = [turn(parent, answer="a b c", failures=(1, 2)) for _ in range(4)]
    for seed in range(30):
        asked = replace(
            proposal(1, *range(3, 40), operator=name, lineage=turns),
            parent=parent,
            failures=tuple(map(attempt, range(5))),
            seed=seed,
        )
        prompt = operator.compose(asked)
        assert len(prompt.token_ids) + prompt.max_tokens <= 1200


# The layouts by themselves, with one token for each block and its number.


class Numbers(Writer):
    """Writes blocks of as many tokens as the candidate's score says."""

    def __init__(self, *, asks_with_parent: bool = False) -> None:
        self.asks_with_parent = asks_with_parent
        self.written: Counter[str] = Counter()

    @property
    def task(self) -> Block:
        return Block(part=Part.TASK, text="T", token_ids=(0,))

    def shown(self, program: Candidate | Pending, part: Part) -> Block:
        if isinstance(program, Pending):
            return Block(part=part, text=f"w{program.id}", token_ids=(int(program.id),) * 3)
        return self._block(part, f"{part.value[0]}{program.id}", program)

    def ask(self, asked: Proposal) -> Sequence[Block]:
        return [Block(part=Part.ASK, text="?" * (1 + len(asked.failures)), token_ids=(2,))]

    def exchange(self, turn: Turn, *, result: Candidate) -> Sequence[Block] | None:
        self.written["exchange"] += 1
        if turn.operator == "other":
            return None
        return [self._block(Part.ANSWER, f"a{result.id}", result)]

    def _block(self, part: Part, text: str, each: Candidate) -> Block:
        return Block(part=part, text=text, token_ids=(int(each.id),) * int(each.score))


def sized(number: int, size: int = 3) -> Candidate:
    return Candidate(id=str(number), program="", score=float(size))


def asked_for(
    parent: int,
    *,
    history: Sequence[int] = (),
    lineage: Sequence[int] = (),
    pending: Sequence[int] = (),
    other: int = -1,
) -> Proposal:
    """Return a proposal; ``other``: of which candidate another operator was asked."""
    turns = tuple(
        replace(turn(sized(each), answer="", operator="other" if each == other else "rewrite"))
        for each in lineage
    )
    return replace(
        proposal(0),
        parent=sized(parent),
        history=tuple(map(sized, history)),
        lineage=turns,
        pending=tuple(Pending(id=str(each), program="") for each in pending),
    )


def words_of(layout: Layout, proposal: Proposal, writer: Numbers | None = None) -> str:
    return " ".join(block.text for block in whole(layout, proposal, writer or Numbers()))


def whole(layout: Layout, proposal: Proposal, writer: Numbers) -> tuple[Block, ...]:
    return (*layout.arrange(proposal, writer), *writer.ask(proposal))


def test_the_order_of_each_layout() -> None:
    asked = asked_for(9, history=[1, 2], lineage=[5, 6, 7])
    layouts = [
        make_layout(prompts, longest_parent=10**6) for prompts in (CLASSIC, STABLE, TRANSCRIPT)
    ]
    assert [words_of(layout, asked) for layout in layouts] == [
        "T p9 h1 h2 ?",
        "T h1 h2 p9 ?",
        "T p5 a6 a7 a9 ?",
    ]
    infill = Numbers(asks_with_parent=True)
    assert words_of(layouts[1], asked, infill) == "T h1 h2 ?"
    assert words_of(layouts[2], asked_for(9), infill) == "T p9 ?"


def test_ancestors_are_shown_whole_each_with_what_became_of_it() -> None:
    """Program 5 became 6, and 6 became the parent 9; inspirations stand before the parent."""
    layout = make_layout(replace(STABLE, layout="ancestors"), longest_parent=10**6)
    asked = asked_for(9, history=[1, 2], lineage=[5, 6])
    assert words_of(layout, asked) == "T p5 a6 p6 a9 h1 h2 p9 ?"
    assert words_of(layout, asked_for(9, history=[1])) == "T h1 p9 ?"
    assert words_of(layout, asked_for(9, lineage=[5, 6], other=5)) == "T p6 a9 p9 ?"
    infill = Numbers(asks_with_parent=True)
    assert words_of(layout, asked, infill) == "T h5 h6 h1 h2 ?"


def test_pending_programs_stand_behind_all_others_in_their_order() -> None:
    asked = asked_for(9, history=[1, 2], lineage=[5, 6], pending=[4, 3])
    layouts = [
        make_layout(prompts, longest_parent=10**6) for prompts in (CLASSIC, STABLE, TRANSCRIPT)
    ]
    assert [words_of(layout, asked) for layout in layouts] == [
        "T p9 h1 h2 w4 w3 ?",
        "T h1 h2 w4 w3 p9 ?",
        "T p5 a6 a9 w4 w3 ?",
    ]
    infill = Numbers(asks_with_parent=True)
    assert words_of(layouts[1], asked, infill) == "T h1 h2 w4 w3 ?"
    assert words_of(layouts[2], asked_for(9, pending=[4]), infill) == "T p9 w4 ?"


@pytest.mark.parametrize(
    ("budget", "spoken"),
    [(100, "p1 a2 a3 a4 a5"), (15, "p1 a2 a3 a4 a5"), (14, "p5"), (9, "p4 a5"), (8, "p3 a4 a5")],
)
def test_where_a_conversation_begins_anew_by_hand(budget: int, spoken: str) -> None:
    """Each step has 3 tokens. Of 9: p1 a2 a3 are 9, a4 is too much; p4 a5 are 6.

    Of 8: p1 a2 are 6, a3 is too much; p3 a4 are 6, and a5 is too much again.
    """
    expected = {8: "p5"}.get(budget, spoken)
    asked = asked_for(5, lineage=[1, 2, 3, 4])
    assert words_of(Transcript(budget=budget), asked) == f"T {expected} ?"


def test_another_operators_turn_is_left_out_with_all_before_it() -> None:
    layout = Transcript(budget=100)
    assert words_of(layout, asked_for(5, lineage=[1, 2, 3], other=2)) == "T p3 a5 ?"
    assert words_of(layout, asked_for(5, lineage=[1, 2, 3], other=3)) == "T p5 ?"


def test_a_long_lineage_is_read_once() -> None:
    layout, writer = Transcript(budget=30), Numbers()
    for length in range(1, 200):
        before = writer.written["exchange"]
        layout.arrange(asked_for(length, lineage=range(length)), writer)
        assert writer.written["exchange"] - before <= 1 + 30 // 3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_less_is_shown_one_by_one_until_the_request_is_left(layout: str) -> None:
    made = make_layout(replace(STABLE, layout=layout), longest_parent=10**6)
    asked = asked_for(9, history=[1, 2, 3], pending=[4, 5])
    if layout == "transcript":
        asked = asked_for(9, lineage=[5, 6], pending=[4, 5])
    if layout == "ancestors":
        asked = asked_for(9, history=[1, 2], lineage=[5, 6], pending=[4, 5])
    left: Proposal | None = replace(asked, failures=(attempt(1), attempt(2)))
    seen = []
    while left is not None:
        seen.append(words_of(made, left))
        left = less(made, left)
    assert seen == {
        "classic": [*(f"T p9 h1 h2 h3 w4 w5 {q}" for q in ("???", "??", "?")), "T p9 h1 h2 h3 w4 ?",
                    "T p9 h1 h2 h3 ?", "T p9 h2 h3 ?", "T p9 h3 ?", "T p9 ?"],
        "stable": [*(f"T h1 h2 h3 w4 w5 p9 {q}" for q in ("???", "??", "?")), "T h1 h2 h3 w4 p9 ?",
                   "T h1 h2 h3 p9 ?", "T h1 h2 p9 ?", "T h1 p9 ?", "T p9 ?"],
        "transcript": [*(f"T p5 a6 a9 w4 w5 {q}" for q in ("???", "??", "?")), "T p5 a6 a9 w4 ?",
                       "T p5 a6 a9 ?", "T p9 ?"],
        "ancestors": [*(f"T p5 a6 p6 a9 h1 h2 w4 w5 p9 {q}" for q in ("???", "??", "?")),
                      "T p5 a6 p6 a9 h1 h2 w4 p9 ?", "T p5 a6 p6 a9 h1 h2 p9 ?",
                      "T p6 a9 h1 h2 p9 ?", "T h1 h2 p9 ?", "T h1 p9 ?", "T p9 ?"],
    }[layout]  # fmt: skip


numbers = st.integers(1, 6)


@given(
    st.sampled_from([CLASSIC, STABLE, TRANSCRIPT]),
    st.lists(numbers, max_size=8, unique=True),
    st.lists(numbers, max_size=8),
    st.lists(numbers, max_size=8),
    st.integers(0, 40),
    st.integers(0, 3),
    st.integers(0, 30),
)
def test_a_prompt_fits_its_room_or_is_said_not_to(
    prompts: PromptSettings,
    history: list[int],
    steps: list[int],
    pending: list[int],
    room: int,
    failures: int,
    longest: int,
) -> None:
    layout = make_layout(prompts, longest_parent=longest)
    asked = replace(
        asked_for(3, history=history, lineage=steps, pending=pending),
        failures=tuple(map(attempt, range(failures))),
    )
    least = 1 + 3 + 1
    try:
        blocks = fitted(layout, asked, Numbers(), Numbers().ask, room=room)
    except UserError as error:
        assert room < least and f"the model takes {room} beside" in str(error)
    else:
        assert sum(len(block.token_ids) for block in blocks) <= room
        assert blocks[0].part is Part.TASK and blocks[-1].part is Part.ASK


@given(
    st.lists(numbers, max_size=6),
    st.lists(numbers, max_size=6),
    st.lists(numbers, max_size=6),
    numbers,
    numbers,
)
def test_stable_prompts_share_what_their_histories_share(
    shared: list[int], one: list[int], other: list[int], p: int, q: int
) -> None:
    layout = Stable()
    prompts = [
        layout.arrange(asked_for(parent, history=[*shared, *rest]), Numbers())
        for parent, rest in ((p, one), (q, other))
    ]
    assert prompts[0][: 1 + len(shared)] == prompts[1][: 1 + len(shared)]


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 9), st.booleans()), max_size=30),
    st.integers(0, 60),
)
def test_a_child_goes_on_where_its_parent_was_asked_or_begins_anew(
    children: list[tuple[int, int, bool]], budget: int
) -> None:
    layout, writer = Transcript(budget=budget), Numbers()
    sizes, lineages = {0: 3}, {0: ()}
    asked: dict[int, tuple[Block, ...]] = {}
    for number, (choice, size, same) in enumerate(children, start=1):
        parent = choice % number
        at = sized(parent, sizes[parent])
        turns: tuple[Turn, ...] = lineages[parent]
        made = replace(asked_for(0), parent=at, lineage=turns)
        blocks = whole(layout, made, writer)
        assert whole(Transcript(budget=budget), made, writer) == blocks
        spoken = blocks[1:-1]
        if parent and Part.ANSWER in {block.part for block in spoken}:
            # The parent's own prompt up to its request, then the parent as an answer.
            assert blocks[:-2] == asked[parent][:-1]
            assert sum(len(block.token_ids) for block in spoken) <= budget
        else:
            assert [block.text for block in spoken] == [f"p{parent}"]
        asked[number], sizes[number] = blocks, size
        lineages[number] = (
            *turns, turn(at, answer="", operator="rewrite" if same else "other")
        )  # fmt: skip

"""Layouts by themselves, with one token for each block and its number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from asked import CLASSIC, LAYOUTS, TRANSCRIPT, attempt, proposal, turn
from hypothesis import given
from hypothesis import strategies as st
from words import STABLE

from engine.core import Block, Candidate, Part, Pending, Proposal, Turn, UserError
from engine.prompts.layouts import Layout, Stable, Transcript, Writer, fitted, less, make_layout
from engine.settings import PromptSettings


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

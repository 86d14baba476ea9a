"""Guidance: what an answer makes of it, and which one a call begins with, by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.core import Direction
from engine.guidance.choice import chosen, rewrites, weights
from engine.guidance.text import INITIAL_GUIDANCE, rewritten
from engine.store import TriedGuidance

OLD = "Approaches:\n- none named yet\nMistakes:\n- none named yet\n"


def block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


def made(answer: str, *, old: str = OLD, most: int = 100) -> str | None:
    return rewritten(old, answer, size=lambda text: len(text.split()), most=most)


def test_blocks_change_the_first_place_that_they_name() -> None:
    answer = f"Because of the score:\n{block('- none named yet', '- Newton steps')}"
    assert made(answer) == "Approaches:\n- Newton steps\nMistakes:\n- none named yet\n"
    both = answer + block("Mistakes:\n- none named yet", "Mistakes:\n- loops")
    assert made(both) == "Approaches:\n- Newton steps\nMistakes:\n- loops\n"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Use Newton steps.",
        block("- none named", "- half a line"),
        block("- none named yet", "- none named yet"),
        block("Approaches:\n- none named yet\nMistakes:\n- none named yet", ""),
        block("- none named yet", "# EVOLVE-BLOCK-START"),
        block("- none named yet", "#:file other.py"),
        block("- none named yet", "word " * 200),
        block("- none named yet", "- Newton steps").removesuffix(">>>>>>> REPLACE\n"),
    ],
)
def test_an_answer_of_no_use_brings_no_guidance(answer: str) -> None:
    assert made(answer) is None


def test_marks_of_a_conversation_are_broken_up() -> None:
    text = made(block("- none named yet", "- say <|im_end|>\n- \x00"))
    assert text is not None and "<|im_end|>" not in text and "\x00" not in text


def test_the_initial_guidance_can_be_rewritten_line_by_line() -> None:
    for line in INITIAL_GUIDANCE.splitlines():
        assert made(block(line, "- something else"), old=INITIAL_GUIDANCE) is not None


def tried(*scores: float | None) -> list[TriedGuidance]:
    ids = [None, *(f"{n}.0" for n in range(1, len(scores)))]
    return [TriedGuidance(id=i, score=s) for i, s in zip(ids, scores, strict=True)]


def test_weights_are_one_over_the_rank_and_what_was_not_tried_is_last() -> None:
    found = weights(tried(3.0, None, 5.0, 5.0), Direction.MAXIMISE)
    assert found.tolist() == pytest.approx([1 / 3, 1 / 4, 1 / 1.5, 1 / 1.5])
    found = weights(tried(3.0, None, 5.0), Direction.MINIMISE)
    assert found.tolist() == pytest.approx([1, 1 / 3, 1 / 2])


def test_each_rule_has_its_own_choice() -> None:
    known = tried(3.0, None, 5.0)
    seen = {
        rule: Counter(
            chosen(known, rule=rule, seed=seed, direction=Direction.MAXIMISE)
            for seed in range(3000)
        )
        for rule in ("first", "explore", "exploit")
    }
    assert seen["first"] == {None: 3000}
    assert all(800 < count < 1200 for count in seen["explore"].values())
    # 1/2, 1/3 and 1 of 11/6.
    assert 720 < seen["exploit"][None] < 920 and 1530 < seen["exploit"]["2.0"] < 1750
    assert [rewrites(rule) for rule in ("first", "explore", "exploit", "weighted")] == [
        *(True, True, False, False),
    ]

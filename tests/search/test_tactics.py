"""When the model is asked what to try, and which idea each call is shown, by hand."""

from __future__ import annotations

from engine.core import Direction
from engine.search.tactics import Tactician
from engine.settings import TacticsSettings

UP, DOWN = Direction.MAXIMISE, Direction.MINIMISE
STAGNATION = TacticsSettings(when="stagnation", window=4, below=0.5, ideas=2, uses=2, tokens=100)
PERIODIC = TacticsSettings(when="periodic", window=3, below=0.5, ideas=2, uses=2, tokens=100)


def guide(settings: TacticsSettings = STAGNATION, *, direction: Direction = UP) -> Tactician:
    made = Tactician(settings, direction=direction, shown_by={"rewrite", "diff"})
    made.begin_with(1.0)
    return made


def test_it_is_due_once_too_few_of_the_last_children_were_the_best_so_far() -> None:
    made = guide()
    for score, is_due in ((2.0, False), (3.0, False), (None, False), (2.5, False), (2.9, True)):
        made.judge(score)  # the first four have two of four, which is not below one half
        assert made.is_due is is_due
    made.judge(4.0)
    assert made.is_due  # 3 left the window: one of four
    made.judge(5.0)
    assert not made.is_due


def test_smaller_is_better_where_scores_are_minimised() -> None:
    made = guide(direction=DOWN)
    for score in (0.9, 0.8, 2.0, 3.0):
        made.judge(score)
    assert not made.is_due
    made.judge(0.8)
    assert made.is_due


def test_ideas_of_a_stagnation_take_turns_until_each_is_used_up() -> None:
    made = guide()
    assert made.idea_for("rewrite") == ""
    for _ in range(4):
        made.judge(None)
    assert made.is_due
    made.take(("a", "b"))
    seen = []
    for _ in range(5):
        assert made.is_due is not bool(made.idea_for("rewrite"))
        assert made.changes_the_best("rewrite") is bool(made.idea_for("rewrite"))
        seen.append(made.idea_for("rewrite"))
        made.begin("rewrite")
    assert seen == ["a", "b", "a", "b", ""]
    assert list(made.tried) == ["a", "b"]


def test_calls_that_show_no_idea_take_no_turn_and_change_what_they_would() -> None:
    made = guide()
    for _ in range(4):
        made.judge(None)
    made.take(("a", "b"))
    for operator in ("diff", "infill", "infill", "rewrite"):
        assert made.idea_for("infill") == "" and not made.changes_the_best("infill")
        assert made.changes_the_best("diff")
        made.begin(operator)
    assert made.idea_for("diff") == "a"  # its second turn, after two calls


def test_an_answer_without_an_idea_is_not_asked_for_again_at_once() -> None:
    made = guide()
    for _ in range(4):
        made.judge(None)
    made.take(())
    assert not made.is_due and made.idea_for("rewrite") == ""
    for _ in range(4):
        made.judge(None)
    assert made.is_due


def test_periodic_ideas_take_turns_until_the_next_ones_come() -> None:
    made = guide(PERIODIC)
    for score in (2.0, 3.0, 4.0):
        assert not made.is_due
        made.judge(score)
    assert made.is_due
    made.take(("a", "b"))
    assert not made.changes_the_best("rewrite")
    seen = []
    for _ in range(3):
        seen.append(made.idea_for("rewrite"))
        made.begin("rewrite")
        made.judge(None)
    assert (seen, made.is_due) == (["a", "b", "a"], True)
    made.take(("c",))
    assert made.idea_for("rewrite") == "c"
    for _ in range(3):
        made.judge(None)
    made.take(())  # no list in the answer
    assert made.idea_for("rewrite") == "c" and not made.is_due

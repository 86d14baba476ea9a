"""Which children are kept as examples."""

from collections.abc import Callable

from engine.learning.expert import Examples
from engine.learning.group import Group

Groups = Callable[..., Group]


def test_the_best_come_first_and_each_program_once(group_of: Groups) -> None:
    examples = Examples()
    examples.take([group_of("x", {"a": 0.5, "b": 0.0, "c": 0.9}), group_of("y", {"d": 0.7})])
    examples.take([group_of("x", {"a": 0.5}), group_of("x", {"e": 0.6})])
    assert [example.key for example in examples] == ["xc", "yd", "xe", "xa"]


def test_few_of_one_prompt_and_a_bounded_number_are_kept(group_of: Groups) -> None:
    examples = Examples()
    letters = "abcdefgh"
    examples.take([group_of("x", {letter: 0.9 for letter in letters})])
    assert len(list(examples)) == 4
    examples.take(group_of(f"y{number}", {"a": 0.5, "b": 0.4}) for number in range(100))
    kept = list(examples)
    assert len(kept) == 128
    assert [example.worth[0] for example in kept[:4]] == [0.9] * 4
    assert kept[-1].worth[0] == 0.4

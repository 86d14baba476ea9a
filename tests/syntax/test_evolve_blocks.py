"""What may change of a program, and how an answer is merged into it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.bundle import bundle_of, files_of
from engine.syntax import read
from engine.syntax.blocks import fixed_text, keeps_fixed, merged, open_text, outline

ONE = """import math
# EVOLVE-BLOCK-START
x = 1
# EVOLVE-BLOCK-END
def f():
    # EVOLVE-BLOCK-START the second
    y = 2
    # EVOLVE-BLOCK-END
    return x + y
"""
CPP = "int n;\n  // EVOLVE-BLOCK-START\n  int a = 1;\n  // EVOLVE-BLOCK-END\nint main() {}\n"
TWO = bundle_of({"a.py": ONE, "b/c.cpp": CPP, "fixed.py": "z = 3\n"})
OPEN = bundle_of({"a.py": "x = 1\n", "b.py": "y = 2\n"})


def test_a_program_without_blocks_is_open_everywhere() -> None:
    assert merged("x = 1\n", "x = 2\n") == "x = 2\n"
    assert fixed_text("x = 1\n") == "" == fixed_text(OPEN)
    assert open_text("x = 1\n") == "x = 1\n"
    assert open_text(OPEN) == OPEN
    assert keeps_fixed("x = 2", parent="import os")


def test_the_open_text_of_a_program_is_its_blocks_with_their_marks() -> None:
    assert open_text(ONE) == (
        "# EVOLVE-BLOCK-START\nx = 1\n# EVOLVE-BLOCK-END\n"
        "    # EVOLVE-BLOCK-START the second\n    y = 2\n    # EVOLVE-BLOCK-END\n"
    )
    assert open_text(TWO) == (
        f"#:file a.py\n{open_text(ONE)}#:file b/c.cpp\n"
        "  // EVOLVE-BLOCK-START\n  int a = 1;\n  // EVOLVE-BLOCK-END\n"
    )


def test_the_fixed_text_is_everything_else() -> None:
    assert fixed_text(TWO) == (
        "#:file a.py\nimport math\n# EVOLVE-BLOCK-START\n(block 1)\n# EVOLVE-BLOCK-END\n"
        "def f():\n    # EVOLVE-BLOCK-START the second\n(block 2)\n    # EVOLVE-BLOCK-END\n"
        "    return x + y\n"
        "#:file b/c.cpp\nint n;\n  // EVOLVE-BLOCK-START\n(block 1)\n  // EVOLVE-BLOCK-END\n"
        "int main() {}\n#:file fixed.py\nz = 3\n"
    )


def test_what_an_answer_says_of_the_fixed_text_is_left_out() -> None:
    answer = ONE.replace("import math", "import os").replace("x = 1", "x = 7")
    assert merged(ONE, answer.replace("return x + y", "return 1e9")) == ONE.replace(
        "x = 1", "x = 7"
    )
    assert merged(ONE, open_text(answer)) == ONE.replace("x = 1", "x = 7")


def test_an_answer_may_change_one_file_of_several() -> None:
    changed = merged(TWO, "#:file b/c.cpp\n" + open_text(CPP.replace("a = 1", "a = 2")))
    assert changed is not None
    assert files_of(changed)["b/c.cpp"] == CPP.replace("a = 1", "a = 2")
    assert files_of(changed)["a.py"] == ONE
    assert merged(OPEN, "#:file b.py\ny = 5\n") == OPEN.replace("y = 2", "y = 5")


def test_a_program_of_one_open_file_needs_no_name() -> None:
    program = bundle_of({"main.cpp": CPP, "lib.h": "int f();\n"})
    changed = merged(program, CPP.replace("a = 1", "a = 2"))
    assert changed == program.replace("a = 1", "a = 2")


@pytest.mark.parametrize(
    "answer",
    [
        "x = 7\n",  # no marks
        "# EVOLVE-BLOCK-START\nx = 1\n# EVOLVE-BLOCK-END\n",  # one block of two
        ONE + "# EVOLVE-BLOCK-START\n# EVOLVE-BLOCK-END\n",  # one too many
        "# EVOLVE-BLOCK-START\nx = 1\n",  # cut off
        ONE.replace("x = 1", "# EVOLVE-BLOCK-START"),  # one in another
    ],
)
def test_an_answer_with_other_blocks_is_none(answer: str) -> None:
    assert merged(ONE, answer) is None


@pytest.mark.parametrize(
    "answer",
    [
        "y = 5\n",  # of which file?
        "#:file c.py\ny = 5\n",  # not a file of the program
        "#:file ../../etc/passwd\ny = 5\n",
        "#:file b.py\ny = 5\n#:file b.py\ny = 6\n",
        "Sure.\n#:file b.py\ny = 5\n",
    ],
)
def test_an_answer_that_names_no_file_of_the_program_is_none(answer: str) -> None:
    assert merged(OPEN, answer) is None


def test_a_file_without_a_block_is_fixed_where_another_one_has_some() -> None:
    assert merged(TWO, "#:file fixed.py\nz = 4\n") is None
    assert not keeps_fixed(TWO.replace("z = 3", "z = 4"), parent=TWO)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import math", "import os"),
        ("z = 3\n", "z = 3\n#:file g.py\n"),
        ("#:file fixed.py", "#:file other.py"),
        ("x = 1\n", "# EVOLVE-BLOCK-END\nx = 1\n# EVOLVE-BLOCK-START\n"),
        ("x = 1\n", "# EVOLVE-BLOCK-END\n"),
        ("the second", "the third"),
    ],
)
def test_a_change_outside_is_seen(old: str, new: str) -> None:
    assert old in TWO
    assert not keeps_fixed(TWO.replace(old, new), parent=TWO)
    assert not keeps_fixed(ONE, parent=TWO)
    assert not keeps_fixed(TWO, parent=ONE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x\n# EVOLVE-BLOCK-END\n", "line 2"),
        ("# EVOLVE-BLOCK-START\n\n# EVOLVE-BLOCK-START\n", "line 3"),
        ("x\n# EVOLVE-BLOCK-START\nx", "line 2"),
        ("#:file a.py\nx\n# EVOLVE-BLOCK-END\n#:file b.py\n", "a.py line 2"),
    ],
)
def test_a_missing_mark_is_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        outline(text)


@pytest.mark.parametrize("comment", ["#", "//", "--", "/*", ";", "%", "  \t//"])
def test_marks_stand_in_comments_of_many_languages(comment: str) -> None:
    text = f"a\n{comment} EVOLVE-BLOCK-START\nb\n{comment} EVOLVE-BLOCK-END */\nc\n"
    assert outline(text).files[0].pieces[1] == "b\n"


def test_a_word_in_the_code_is_no_mark() -> None:
    assert outline("x = 'EVOLVE-BLOCK-START'\n").is_plain


LINES = st.lists(
    st.sampled_from(["x = 1", "", "#:file a.py", "##:file b", "  \t", "\r", "é\x0c"]), max_size=4
).map(lambda lines: "".join(f"{line}\n" for line in lines))


@st.composite
def files(draw: st.DrawFn) -> str:
    """The text of a file, with blocks or without."""
    text = draw(LINES)
    for _ in range(draw(st.integers(0, 2))):
        block = draw(LINES)
        text += f"# EVOLVE-BLOCK-START\n{block}# EVOLVE-BLOCK-END\n{draw(LINES)}"
    return text


PROGRAMS = st.dictionaries(st.sampled_from(["a.py", "b.py", "c/d.cpp"]), files(), min_size=1).map(
    bundle_of
)


@given(PROGRAMS)
def test_a_program_is_merged_with_its_own_open_text(program: str) -> None:
    normal = merged(program, open_text(program))  # a file that is open as a whole is trimmed
    assert normal is not None
    assert keeps_fixed(normal, parent=program)
    assert merged(normal, open_text(normal)) == normal


@given(PROGRAMS, files() | PROGRAMS | st.text())
def test_any_answer_keeps_what_is_fixed_or_is_none(program: str, answer: str) -> None:
    child = merged(program, answer)
    if child is not None:
        assert keeps_fixed(child, parent=program)
        assert outline(child).text == child


@given(st.text() | PROGRAMS, st.text() | PROGRAMS)
def test_no_text_is_an_error(program: str, parent: str) -> None:
    assert keeps_fixed(program, parent=parent) in (True, False)
    read(program)

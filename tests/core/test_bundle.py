"""A program of several files is one text: it comes back whole, and hostile ones are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.bundle import MAIN, MOST_FILES, bundle_of, files_of, is_bundle

NAMES = st.from_regex(r"[a-z_]{1,3}(/[a-z_]{1,3}){0,2}\.py", fullmatch=True)
LINES = st.sampled_from(
    [
        "x = 1",
        "#:file a.py",
        "##:file a.py",
        "#:file b.py \\",
        "#:file",
        "",
        "\r",
        "é\x0c\u2028",
        "\\",
    ]
)
TEXTS = st.builds("\n".join, st.lists(LINES | st.text(max_size=5), max_size=6))


@given(st.dictionaries(NAMES, TEXTS, min_size=1, max_size=4))
def test_any_files_come_back(files: dict[str, str]) -> None:
    text = bundle_of(files)
    assert files_of(text) == files
    assert bundle_of(files_of(text)) == text


@given(TEXTS)
def test_a_single_file_is_its_own_text_unless_it_looks_like_a_bundle(text: str) -> None:
    made = bundle_of({MAIN: text})
    assert files_of(made) == {MAIN: text}
    assert (made == text) != is_bundle(text)


@given(TEXTS)
def test_any_text_is_files_or_refused_and_means_one_thing(text: str) -> None:
    try:
        files = files_of(text)
    except ValueError:
        assert is_bundle(text)
    else:
        assert bundle_of(files) == text


def test_the_order_of_the_files_does_not_matter() -> None:
    assert bundle_of({"b.py": "2\n", "a.py": "1\n"}) == bundle_of({"a.py": "1\n", "b.py": "2\n"})


def test_another_main_name() -> None:
    assert files_of("int x;", main="main.cpp") == {"main.cpp": "int x;"}
    assert bundle_of({"main.cpp": "int x;"}, main="main.cpp") == "int x;"


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/passwd", "a/../b", "", ".", "a//b", "a/", ".git/x", "-o", "a\\b", "a b",
     "a\0b", "é.py", "x" * 201, "a/.x", "~"],
)  # fmt: skip
def test_names_outside_the_folder_are_refused(name: str) -> None:
    with pytest.raises(ValueError):
        bundle_of({name: "x", "ok.py": ""})
    with pytest.raises(ValueError):
        files_of(f"#:file {name}\nx\n#:file ok.py\n")


@pytest.mark.parametrize(
    "text",
    [
        "#:file a.py\n#:file a.py\n",  # twice
        "#:file b.py\n#:file a.py\n",  # in another order
        f"#:file {MAIN}\nx\n",  # needs no mark
        "#:file a.py",  # no line
        "#:file a.py\nx",  # the end is not marked as unended
        "#:file a.py \\\n",  # marked as unended, and empty
        "#:file a\n#:file a/b.py\n",  # a file that is a folder
    ],
)
def test_a_bundle_that_is_not_canonical_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        files_of(text)


def test_the_number_of_files_is_bounded() -> None:
    with pytest.raises(ValueError):
        bundle_of({})
    with pytest.raises(ValueError):
        bundle_of({f"f{i}.py": "" for i in range(MOST_FILES + 1)})


def test_a_name_holds_no_line_break() -> None:
    with pytest.raises(ValueError):
        bundle_of({"a\nb": "x"})

"""Reading CSV columns: what is accepted, and the one clear line for what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core import UserError
from evaluators.table import parse_id, parse_number, read_rows


def table(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "table.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        "a,b,c\n1,2,3\n4,5,6\n",
        "c,x,b,a\n3,0,2,1\n6,0,5,4\n",  # any order, and others between them
        "a,b,c\r\n1,2,3\r\n4,5,6",  # no end to the last line
        '\ufeffa,b,c\n1,"2",3\n4,5,6\n',  # as a spreadsheet writes it
    ],
)
def test_columns_are_found_by_name(tmp_path: Path, content: str) -> None:
    rows = read_rows(table(tmp_path, content), ("c", "a"))
    assert list(rows) == [(2, ["3", "1"]), (3, ["6", "4"])]


def test_empty_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    assert list(read_rows(table(tmp_path, "a\n1\n\n2\n\n"), ("a",))) == [(2, ["1"]), (4, ["2"])]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no column 'a' in its first line"),
        ("A,b\n1,2\n", "no column 'a'"),
        ("a,b\n1,2\n3\n", "line 3: 1 values in a file of 2 columns"),
        ("a,b\n1,2,3\n", "line 2: 3 values"),
        ('a,b\n1,"2\n', "line 2 is not valid CSV"),
        (b"a,b\n1,\xff\n", "not UTF-8"),
    ],
)
def test_malformed_files_give_one_line(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = table(tmp_path, content)
    with pytest.raises(UserError, match=message) as caught:
        list(read_rows(path, ("a",)))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.csv can't be read: No such file"):
        list(read_rows(tmp_path / "none.csv", ("a",)))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be read: Is a directory"):
        list(read_rows(tmp_path, ("a",)))


def test_numbers(tmp_path: Path) -> None:
    assert parse_number("-1.5e3", path=tmp_path, line=2, column="x") == -1500
    for text in ("", "nan", "inf", "1e999", "1,5", "one"):
        with pytest.raises(UserError, match=r"line 7: x is .* finite number"):
            parse_number(text, path=tmp_path, line=7, column="x")


def test_ids(tmp_path: Path) -> None:
    assert parse_id("17", path=tmp_path, line=2, column="x") == 17
    for text in ("", "-1", "1.5", "one", str(2**63)):
        with pytest.raises(UserError, match=r"line 7: x is .* integer of at least 0"):
            parse_id(text, path=tmp_path, line=7, column="x")

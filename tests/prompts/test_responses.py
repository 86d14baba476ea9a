"""Answers that list programs: read whole, cut off anywhere, and such as nobody should write."""

from __future__ import annotations

import json
import math

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.prompts.verbalized import Response, responses, schema

QUOTED = (
    'def f(x):\n    """Say "}], {\\"code\\": 1}"."""\n    return {"responses": [x, "\\u00bd½"]}\n'
)
ENTRIES = [
    {"code": "def f(x):\n    return x\n", "probability": 0.25},
    {"code": QUOTED, "probability": 1},
    {"code": "", "probability": 0.0},
]
LIST = [Response(code=each["code"], probability=each["probability"]) for each in ENTRIES]
WHOLE = json.dumps({"responses": ENTRIES})


def read(text: str) -> list[Response]:
    return list(responses(text))


@pytest.mark.parametrize("indent", [None, 0, 3])
def test_a_whole_answer_gives_its_entries_in_order(indent: int | None) -> None:
    assert read(json.dumps({"responses": ENTRIES}, indent=indent)) == LIST
    assert read(json.dumps({"responses": ENTRIES}, indent=indent, ensure_ascii=False)) == LIST


def test_an_answer_cut_off_gives_the_entries_before_the_cut() -> None:
    ends = [WHOLE.index(json.dumps(each)) + len(json.dumps(each)) for each in ENTRIES]
    for end in range(len(WHOLE) + 1):
        assert read(WHOLE[:end]) == LIST[: sum(each <= end for each in ends)], end


@example(text="0E0")
@example(text="1 ,2")
@given(text=st.text(st.sampled_from('{}[],:"1.e \\ncode\\responsprbaliy') | st.characters()))
def test_what_a_start_gives_is_the_start_of_what_the_whole_gives(text: str) -> None:
    whole = '{"responses": [' + text
    found = read(whole)
    for end in range(len(whole)):
        some = read(whole[:end])
        assert some == found[: len(some)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sure!",
        "[1, 2]",
        "{}",
        '{"responses": null}',
        '{"responses": "def f(x): return x"}',
        '{"responses": {"code": "x", "probability": 1}}',
        '{"responses": []}',
        '{"answers": [{"code": "x", "probability": 1}]}',
        '{"responses": [{"code": "x"',
        '{"responses": [12',
        '{"responses": [' + "[" * 100_000,
        '{"responses": [{"code": ' + "9" * 5000 + "}]}",
    ],
)
def test_what_is_no_such_list_gives_nothing(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ('{"code": "x", "probability": 0.5, "why": {"code": "y"}}', ("x", 0.5)),
        ('{"probability": 0.5}', ("", 0.5)),
        ('{"code": null, "probability": "high"}', ("", None)),
        ('{"code": ["x"]}', ("", None)),
        ('"def f(x): return x"', ("", None)),
        ("7", ("", None)),
        ("[]", ("", None)),
        ("{}", ("", None)),
    ],
)
def test_an_entry_without_what_it_should_have_is_one_all_the_same(
    entry: str, expected: tuple[str, float | None]
) -> None:
    last = '{"code": "z", "probability": 1}'
    assert read(f'{{"responses": [{entry}, {last}]}}') == [
        Response(code=expected[0], probability=expected[1]),
        Response(code="z", probability=1.0),
    ]


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e999", "-0.1", "1.1", "1" + "0" * 400, "true"]
)
def test_a_number_that_is_no_probability_is_left_out(number: str) -> None:
    (found,) = read(f'{{"responses": [{{"code": "x", "probability": {number}}}]}}')
    assert found == Response(code="x", probability=None)


def test_a_huge_answer_is_read_once() -> None:
    entry = {"code": "x" * 10_000, "probability": 0.5}
    text = json.dumps({"responses": [entry] * 1000})  # 10 MB, in which nothing is copied
    found = read(text)
    assert len(found) == 1000 and {len(each.code) for each in found} == {10_000}


def test_the_schema_admits_up_to_so_many_entries_and_nothing_else() -> None:
    form = jsonschema.Draft202012Validator(json.loads(schema(2)))
    one = {"code": "x", "probability": 0.5}
    for good in ([one], [one, one], [{**one, "probability": 1}]):
        assert form.is_valid({"responses": good})
    for bad in (
        [],
        [one] * 3,
        [{"code": "x"}],
        [{**one, "probability": 1.5}],
        [{**one, "why": "y"}],
        one,
    ):
        assert not form.is_valid({"responses": bad})
    assert not form.is_valid({"responses": [one], "more": 1})
    assert math.isclose(json.loads(schema(7))["properties"]["responses"]["maxItems"], 7)

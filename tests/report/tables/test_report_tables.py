"""The rows behind a report, on the run of ``hand_log.py``, whose figures can be worked out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_log import (
    FIRST_SESSION,
    PROGRAMS,
    changed,
    hand_run,
    recorded,
    settings_of,
    with_others,
    with_questions,
)

from engine.core import INITIAL, Advice, Feature, Idea, Miss, Novelty
from engine.report.tables import TABLES, grouped_runs
from engine.store import Call, Child, Recorded


def rows(table: str, *arguments: str) -> list[dict[str, object]]:
    return [dict(row) for row in TABLES[table]([hand_run(*arguments)]).rows]


def test_every_program_is_a_row_with_its_fate() -> None:
    found = {row["id"]: row for row in rows("programs")}
    assert list(found) == [INITIAL, "0.0", "0.1", "1.0", "1.1", "1.2", "2.0"]
    assert [row["order"] for row in found.values()] == list(range(7))
    assert {name: (row["outcome"], row["reason"]) for name, row in found.items()} == {
        INITIAL: ("scored", ""),
        "0.0": ("scored", ""),
        "0.1": ("refused", "unparsed"),
        "1.0": ("scored", ""),
        "1.1": ("scored", ""),
        "1.2": ("failed", "error"),
        "2.0": ("scored", ""),
    }
    assert found["0.1"]["program"] is None and found["1.1"]["program"] == PROGRAMS["1.1"]
    assert [name for name, row in found.items() if row["new_best"]] == [INITIAL, "0.0", "1.1"]
    assert (found["1.1"]["seconds"], found["1.1"]["candidates"], found["1.1"]["island"]) == (
        12,
        3,
        1,
    )
    assert found["2.0"]["seconds"] == 16  # 13 of the first session and 3
    assert found["1.1"]["gain"] == pytest.approx(0.15)


def test_a_candidate_without_a_verdict_waits() -> None:
    run = hand_run(events=recorded()[:4])
    last = TABLES["programs"]([run]).rows[-1]
    assert (last["id"], last["outcome"], last["score"]) == ("0.0", "waiting", None)


def test_programs_that_no_call_made_stand_where_they_came() -> None:
    found = {row["id"]: row for row in TABLES["programs"]([hand_run(events=with_others())]).rows}
    assert list(found)[-5:] == ["f0", "3.0", "i2.4.0", "f1", "4.0"]
    assert [row["order"] for row in found.values()] == list(range(12))
    fill, migrant = found["f0"], found["i2.4.0"]
    assert (fill["operator"], fill["parent"], fill["island"]) == ("mutation", "1.1", 1)
    assert (fill["score"], fill["gain"], fill["seconds"]) == (0.95, pytest.approx(0.05), 18)
    assert (migrant["operator"], migrant["parent"], migrant["gain"]) == ("", "", None)
    assert (migrant["score"], migrant["program"]) == (0.97, "m\n")
    assert found["3.0"]["gain"] == pytest.approx(0.01)


def test_spans_hold_all_children_and_all_tokens() -> None:
    outcomes = rows("outcomes")
    assert sum(int(str(row["children"])) for row in outcomes) == 6
    for row in outcomes:
        since, until = float(str(row["since"])), float(str(row["until"]))
        assert 0 <= since < until <= 16 and until - since == pytest.approx(15 / 48)
    prompts = rows("prompts")
    assert sum(int(str(row["prompt_tokens"])) for row in prompts) == 600
    assert {row["hit_rate"] for row in prompts} == {0.8}


def test_spans_hold_what_the_model_was_asked_before_a_child() -> None:
    run = hand_run(events=with_questions())
    first, *others = TABLES["prompts"]([run]).rows
    assert (first["prompt_tokens"], first["cached_prompt_tokens"]) == (200, 110)
    assert first[Miss.COLD] == 70
    assert {row["prompt_tokens"] for row in others} == {100}
    assert sum(row["prompt_tokens"] for row in (first, *others)) == run.history.prompt_tokens


def test_what_an_advisor_was_asked_counts_with_the_child() -> None:
    events = recorded()
    idea = Idea(child="0.0", number=1, hypothesis="h", reasoning="r", novelty=Novelty.NEW)
    advice = Advice(child="0.0", idea="0.0.1", experiment="e", consultations=())
    events[3:3] = [Recorded(session=0, elapsed=2.5, event=each) for each in (idea, advice)]
    (row,) = TABLES["ideas"]([hand_run(events=events)]).rows
    assert (row["idea"], row["experiments"], row["scored"]) == ("0.0.1", 1, 1)
    assert row["best_gain"] == pytest.approx(0.25)


def test_islands_keep_their_own_bests_and_tell_whom_they_took_in() -> None:
    bests = [(row["island"], row["id"], row["best"]) for row in rows("islands")]
    assert bests == [(0, "0.0", 0.75), (1, "1.0", 0.6), (1, "1.1", 0.9)]
    (arrival,) = rows("arrivals")
    assert (arrival["id"], arrival["from_island"], arrival["island"]) == ("0.0", 0, 1)


def test_an_island_made_what_its_idle_evaluators_did() -> None:
    run = hand_run(events=with_others())
    made = TABLES["islands"]([run]).rows
    assert [row["id"] for row in made] == ["0.0", "1.0", "1.1", "f0", "3.0", "f1", "4.0"]
    assert [row["island"] for row in made] == [0, 1, 1, 1, 0, 1, 0]
    arrivals = TABLES["arrivals"]([run]).rows
    assert [(row["id"], row["from_island"], row["island"]) for row in arrivals] == [
        ("0.0", 0, 1),
        ("f0", 1, 0),
        ("f1", 1, 0),
    ]


def test_an_archive_has_the_best_program_of_each_cell() -> None:
    cells = {INITIAL: (0, 1), "0.0": (0, 1), "1.0": (2, 0), "1.1": None, "2.0": (2, 0)}
    features = (
        Feature(name="characters", low=0, high=20, bins=4),
        Feature(name="nodes", low=0, high=10, bins=2),
    )
    run = hand_run("search.archive=problem", events=changed(cell=cells), declared=features)
    found = TABLES["archive"]([run]).rows
    assert [(row["id"], row["score"], row["programs"]) for row in found] == [
        ("0.0", 0.75, 2),
        ("1.0", 0.6, 2),
    ]
    assert (found[1]["feature_1"], found[1]["low_1"], found[1]["high_1"]) == ("characters", 10, 15)
    assert (found[0]["low_2"], found[0]["high_2"]) == (5, 10)


def test_groups_are_runs_that_differ_in_nothing_but_the_seed() -> None:
    runs = [
        replace(
            hand_run(), name=f"{k}-{seed}", settings=settings_of(f"search.k={k}", f"seed={seed}")
        )
        for k in (1, 4)
        for seed in (0, 1)
    ]
    groups = grouped_runs(runs)
    assert [(group.label, [run.name for run in group.runs]) for group in groups] == [
        ("search.k=1", ["1-0", "1-1"]),
        ("search.k=4", ["4-0", "4-1"]),
    ]
    assert [group.label for group in grouped_runs(runs[:2])] == [""]
    listed = {row["setting"]: row for row in TABLES["settings"](runs).rows}
    assert listed["seed"]["4-1"] == "1" and listed["search.k"]["4-1"] == "4"


def test_all_tables_have_the_same_columns_in_each_row_of_a_run() -> None:
    for name, table in TABLES.items():
        found = table([hand_run("search.archive=structure")]).rows
        assert len({tuple(row) for row in found}) <= 1, name


def test_a_run_without_a_child_has_its_beginning() -> None:
    run = hand_run(events=[Recorded(session=0, elapsed=0.0, event=e) for e in FIRST_SESSION[:2]])
    assert [row["id"] for row in TABLES["programs"]([run]).rows] == [INITIAL]
    empty = {name for name, table in TABLES.items() if not table([run]).rows}
    assert empty == set(TABLES) - {"runs", "programs", "bests"}


def test_a_call_is_a_row_with_what_it_brought() -> None:
    first, second, last = rows("calls")
    assert (first["children"], first["scored"], first["improved"], first["best_gain"]) == (
        2,
        1,
        1,
        0.25,
    )
    assert (second["k"], second["improved"]) == (3, 1)
    assert (last["k"], last["children"]) == (2, 1)
    assert isinstance(FIRST_SESSION[2], Call) and isinstance(FIRST_SESSION[3], Child)
